"""Cooking: recipes, ingredients, kinds of food."""

from neuroscope_jax.demo.subjects.family import Family, article, table

DISH_TABLE = table(
    "dish first second third last",
    """
    omelette, eggs, butter, beat the eggs and melt the butter in a pan, Fold it and serve it hot
    pancakes, flour, milk, mix them with an egg and fry spoonfuls in a pan, Serve them with honey
    tea, water, tea leaves, boil the water and pour it over the leaves, Wait for three minutes
    coffee, water, ground coffee, boil the water and pour it over the coffee, Drink it while it is hot
    toast, bread, butter, cut the bread and brown it, Spread the butter while it is warm
    tomato soup, tomatoes, onions, chop them and boil them in water, Add salt and stir well
    vegetable soup, carrots, potatoes, cut them small and boil them in water, Add salt and parsley
    pasta, pasta, tomato sauce, boil the pasta in salted water and warm the sauce, Mix them and add cheese
    rice, rice, water, wash the rice and boil it slowly, Let it rest for ten minutes
    fruit salad, apples, oranges, peel them and cut them into pieces, Add a little lemon juice
    green salad, lettuce, cucumber, wash them and cut them, Add oil and salt
    pizza, dough, tomatoes, roll out the dough and put the tomatoes on top, Bake it until the edge is brown
    bread, flour, yeast, knead them with water and let the dough rise, Bake it for forty minutes
    apple pie, apples, pastry, cut the apples and lay them in the pastry, Bake it until it is golden
    a cake, flour, sugar, mix them with eggs and butter, Bake it for thirty minutes
    boiled eggs, eggs, water, boil the eggs for seven minutes, Cool them in cold water
    mashed potatoes, potatoes, milk, boil the potatoes and mash them with the milk, Add salt and butter
    a sandwich, bread, cheese, lay the cheese on the bread, Cover it with another slice
    porridge, oats, milk, boil them slowly and stir, Add honey or fruit
    lemonade, lemons, sugar, squeeze the lemons and stir in the sugar, Add cold water and ice
    """,
)
DISHES = tuple({**row, "dish": "an omelette" if row["dish"] == "omelette" else row["dish"]} for row in DISH_TABLE)
FOOD_TABLE = table(
    "food kind taste",
    """
    apple, fruit, sweet
    banana, fruit, sweet
    pear, fruit, sweet
    lemon, fruit, sour
    orange, fruit, sweet
    grape, fruit, sweet
    cherry, fruit, sweet
    strawberry, fruit, sweet
    carrot, vegetable, sweet
    onion, vegetable, sharp
    cabbage, vegetable, mild
    potato, vegetable, mild
    cucumber, vegetable, fresh
    radish, vegetable, sharp
    """,
)
FOODS = tuple({**row, "a_food": article(row["food"])} for row in FOOD_TABLE)
SOURCES = table(
    "product source",
    """
    bread, flour
    cheese, milk
    butter, cream
    wine, grapes
    flour, wheat
    honey, nectar
    chocolate, cocoa beans
    paper, wood
    glass, sand
    wool sweaters, the wool of sheep
    candles, wax
    omelettes, eggs
    juice, fruit
    chips, potatoes
    """,
)

FAMILIES = (
    Family(
        "cooking",
        DISHES,
        (
            "How do I make {dish}?",
            "How do you make {dish}?",
            "Tell me how to make {dish}.",
            "Give me a recipe for {dish}.",
            "How can I prepare {dish}?",
            "What is the recipe for {dish}?",
            "I want to make {dish}.",
            "Can you tell me how to cook {dish}?",
            "I am hungry. How do I make {dish}?",
        ),
        ("Do you have a recipe for {dish}?", "Please explain how to make {dish}."),
        ("To make {dish}, you need {first} and {second}. First, {third}. {last}.",),
        followups=("And {dish}?", "How do I make {dish}?"),
        weight=2.0,
    ),
    Family(
        "ingredients",
        DISHES,
        (
            "What do I need for {dish}?",
            "What goes into {dish}?",
            "Which ingredients are in {dish}?",
            "What should I buy for {dish}?",
            "What are the ingredients of {dish}?",
            "What is in {dish}?",
        ),
        ("Tell me the ingredients for {dish}.",),
        ("For {dish} you need {first} and {second}.",),
        "{first} and {second}",
        ("And for {dish}?",),
    ),
    Family(
        "food",
        FOODS,
        (
            "Is {a_food} a fruit or a vegetable?",
            "What kind of food is {a_food}?",
            "Is {a_food} a fruit?",
            "Is {a_food} a vegetable?",
            "What is {a_food}?",
        ),
        ("Tell me if {a_food} is a fruit or a vegetable.",),
        ("{A_food} is a {kind}.",),
        "{kind}",
        ("And {a_food}?",),
        0.8,
    ),
    Family(
        "food",
        FOODS,
        ("How does {a_food} taste?", "What does {a_food} taste like?", "What is the taste of {a_food}?"),
        ("Tell me how {a_food} tastes.",),
        ("{A_food} tastes {taste}.",),
        "{taste}",
        ("And {a_food}?",),
        0.6,
    ),
    Family(
        "materials",
        SOURCES,
        (
            "What is {product} made from?",
            "What do we make {product} from?",
            "What are {product} made of?",
            "From what do people make {product}?",
            "Where do we get {product} from?",
        ),
        ("Tell me what {product} is made from.",),
        ("We make {product} from {source}.",),
        "{source}",
        ("And {product}?",),
        0.8,
    ),
)
