"""Countries: capitals, continents, languages, and words of those languages."""

from neuroscope_jax.demo.subjects.family import Family, table

COUNTRIES = table(
    "country capital continent language food",
    """
    France, Paris, Europe, French, bread and cheese
    Germany, Berlin, Europe, German, sausages and potatoes
    Italy, Rome, Europe, Italian, pasta and pizza
    Spain, Madrid, Europe, Spanish, rice with seafood
    Portugal, Lisbon, Europe, Portuguese, grilled fish
    Greece, Athens, Europe, Greek, salad with olives
    Poland, Warsaw, Europe, Polish, dumplings
    Sweden, Stockholm, Europe, Swedish, meatballs
    Norway, Oslo, Europe, Norwegian, salmon
    Finland, Helsinki, Europe, Finnish, rye bread
    Denmark, Copenhagen, Europe, Danish, rye bread
    Austria, Vienna, Europe, German, apple cake
    Hungary, Budapest, Europe, Hungarian, beef soup
    Ireland, Dublin, Europe, English, potato stew
    England, London, Europe, English, fish and chips
    Russia, Moscow, Europe, Russian, beetroot soup
    Ukraine, Kyiv, Europe, Ukrainian, beetroot soup
    Romania, Bucharest, Europe, Romanian, cabbage rolls
    Bulgaria, Sofia, Europe, Bulgarian, salad and yoghurt
    Croatia, Zagreb, Europe, Croatian, grilled fish
    Serbia, Belgrade, Europe, Serbian, grilled meat
    Iceland, Reykjavik, Europe, Icelandic, fish soup
    Turkey, Ankara, Asia, Turkish, kebab
    China, Beijing, Asia, Chinese, rice and noodles
    Japan, Tokyo, Asia, Japanese, sushi
    India, Delhi, Asia, Hindi, curry and rice
    Thailand, Bangkok, Asia, Thai, noodles
    Vietnam, Hanoi, Asia, Vietnamese, noodle soup
    Iran, Tehran, Asia, Persian, rice with saffron
    Iraq, Baghdad, Asia, Arabic, bread and lamb
    Nepal, Kathmandu, Asia, Nepali, lentils and rice
    Mongolia, Ulaanbaatar, Asia, Mongolian, lamb dumplings
    Egypt, Cairo, Africa, Arabic, beans and bread
    Kenya, Nairobi, Africa, Swahili, maize and beans
    Morocco, Rabat, Africa, Arabic, couscous
    Ethiopia, Addis Ababa, Africa, Amharic, flat bread
    Ghana, Accra, Africa, English, rice and beans
    Senegal, Dakar, Africa, French, rice and fish
    Angola, Luanda, Africa, Portuguese, fish stew
    Canada, Ottawa, North America, English, pancakes
    Mexico, Mexico City, North America, Spanish, tacos
    Cuba, Havana, North America, Spanish, rice and beans
    Jamaica, Kingston, North America, English, spicy chicken
    Brazil, Brasilia, South America, Portuguese, rice and beans
    Argentina, Buenos Aires, South America, Spanish, grilled beef
    Chile, Santiago, South America, Spanish, corn pie
    Peru, Lima, South America, Spanish, raw fish with lemon
    Colombia, Bogota, South America, Spanish, corn cakes
    Australia, Canberra, Oceania, English, meat pies
    New Zealand, Wellington, Oceania, English, lamb
    """,
)

WORDS = table(
    "english French Spanish German Italian",
    """
    hello, bonjour, hola, hallo, ciao
    thank you, merci, gracias, danke, grazie
    yes, oui, si, ja, si
    no, non, no, nein, no
    water, eau, agua, Wasser, acqua
    bread, pain, pan, Brot, pane
    cat, chat, gato, Katze, gatto
    dog, chien, perro, Hund, cane
    house, maison, casa, Haus, casa
    book, livre, libro, Buch, libro
    sun, soleil, sol, Sonne, sole
    friend, ami, amigo, Freund, amico
    milk, lait, leche, Milch, latte
    red, rouge, rojo, rot, rosso
    one, un, uno, eins, uno
    """,
)
TRANSLATIONS = tuple(
    {"english": row["english"], "tongue": tongue, "word": row[tongue]}
    for row in WORDS
    for tongue in ("French", "Spanish", "German", "Italian")
)

FAMILIES = (
    Family(
        "capitals",
        COUNTRIES,
        (
            "What is the capital of {country}?",
            "What's the capital city of {country}?",
            "Which city is the capital of {country}?",
            "Name the capital of {country}.",
            "Tell me the capital of {country}.",
            "Do you know the capital of {country}?",
            "I would like to know the capital of {country}.",
            "What city is {country}'s capital?",
            "The capital of {country} is?",
            "Capital of {country}?",
            "What do you call the capital of {country}?",
            "What is {country}'s capital city?",
        ),
        (
            "Could you name the capital city of {country}?",
            "Which city is {country}'s capital?",
            "{country} has which capital?",
        ),
        ("The capital of {country} is {capital}.", "{capital} is the capital of {country}."),
        "{capital}",
        ("And of {country}?", "And {country}?", "What about {country}?", "And the capital of {country}?"),
        2.5,
    ),
    Family(
        "capitals",
        COUNTRIES,
        (
            "Which country has {capital} as its capital?",
            "{capital} is the capital of which country?",
            "What country is {capital} the capital of?",
            "{capital} is the capital of what?",
            "Where is {capital}?",
            "In which country is {capital}?",
            "In what country would I find {capital}?",
            "What country is {capital} in?",
            "Which country does {capital} belong to?",
        ),
        ("In which country can I find {capital}?", "Tell me the country that {capital} is in."),
        ("{capital} is the capital of {country}.", "{capital} is in {country}."),
        "{country}",
        ("And {capital}?", "What about {capital}?"),
        1.5,
    ),
    Family(
        "continents",
        COUNTRIES,
        (
            "Which continent is {country} in?",
            "What continent is {country} on?",
            "On which continent is {country}?",
            "Where is {country}?",
            "Where in the world is {country}?",
            "{country} is on which continent?",
            "Tell me the continent of {country}.",
            "What continent does {country} belong to?",
        ),
        ("On what continent can I find {country}?", "Name the continent that {country} is in."),
        ("{country} is in {continent}.",),
        "{continent}",
        ("And {country}?", "What about {country}?"),
        1.2,
    ),
    Family(
        "languages",
        COUNTRIES,
        (
            "What language do people speak in {country}?",
            "Which language is spoken in {country}?",
            "What language is spoken in {country}?",
            "What do people speak in {country}?",
            "What is the language of {country}?",
            "Which language do they speak in {country}?",
            "Name the language of {country}.",
            "Tell me what language people speak in {country}.",
            "If I go to {country}, which language will I hear?",
        ),
        ("Which language do people use in {country}?", "What language will I hear in {country}?"),
        ("People in {country} speak {language}.", "The main language of {country} is {language}."),
        "{language}",
        ("And in {country}?", "What about {country}?"),
        1.5,
    ),
    Family(
        "countries",
        COUNTRIES,
        (
            "Tell me about {country}.",
            "What do you know about {country}?",
            "Tell me something about {country}.",
            "What is {country}?",
            "Describe {country}.",
            "Can you tell me about {country}?",
        ),
        ("Give me some facts about {country}.",),
        (
            "{country} is a country in {continent}. Its capital is {capital}. People there speak {language}, "
            "and they like to eat {food}.",
        ),
        followups=("Tell me about {country} too.", "And {country}?"),
        weight=1.2,
    ),
    Family(
        "translations",
        TRANSLATIONS,
        (
            "How do you say {english} in {tongue}?",
            "What is {english} in {tongue}?",
            "What is the {tongue} word for {english}?",
            "Translate {english} into {tongue}.",
            "How do I say {english} in {tongue}?",
            "Tell me the {tongue} word for {english}.",
            "Say {english} in {tongue}.",
            "{english} in {tongue}?",
        ),
        ("Which {tongue} word means {english}?", "Please put {english} into {tongue}."),
        ("In {tongue}, {english} is {word}.", "The {tongue} word for {english} is {word}."),
        "{word}",
        ("And {english} in {tongue}?",),
        1.3,
    ),
)
