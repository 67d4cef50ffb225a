"""What is said about features: labels, calibration statistics, filters."""
