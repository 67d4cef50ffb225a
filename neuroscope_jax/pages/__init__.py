"""What is known of each feature, for people: pages to open in a browser, and text for a terminal."""
