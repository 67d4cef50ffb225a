"""Small talk: greetings, thanks, moods, and questions about the assistant itself."""

from collections.abc import Callable
from random import Random

from neuroscope_jax.demo.subjects.family import Row, Writer

NAMES = (
    "Anna Ben Clara David Emma Felix Greta Hugo Ida Jonas Karla Leo Maria Nora Oscar Paul Rosa Sam Tina Victor".split()
)
LIST = "capitals, animals, sums, colours, planets, cooking and the weather"


def _one_of(*answers: str) -> Callable[[Random], tuple[Row, str]]:
    def write(rng: Random) -> tuple[Row, str]:
        return {}, rng.choice(answers)

    return write


def introduce(rng: Random) -> tuple[Row, str]:
    """Somebody gives a name and is greeted by it."""
    name = rng.choice(NAMES)
    return {"name": name}, rng.choice(
        (f"Nice to meet you, {name}! How can I help you?", f"Hello, {name}! What can I do for you?")
    )


FAMILIES = (
    Writer(
        "greetings",
        _one_of("Hello! How can I help you?", "Hello! What would you like to know?"),
        (
            "Hello",
            "Hi",
            "Hey",
            "Hello!",
            "Hi there!",
            "Hey there!",
            "Good morning!",
            "Good evening!",
            "Hello there",
            "Hi!",
            "Good day!",
        ),
        ("Hello, assistant!", "Good afternoon!"),
        1.6,
    ),
    Writer(
        "greetings",
        _one_of("I am fine, thank you! How can I help you?", "I am very well, thank you. What would you like to know?"),
        (
            "How are you?",
            "Hello, how are you?",
            "Hi, how are you?",
            "How are you today?",
            "How are you doing?",
            "Hey, how is it going?",
            "Are you well?",
            "Good morning, how are you?",
            "How do you feel?",
            "What's up?",
        ),
        ("Hello! How are you doing today?", "Hey, how are you?"),
        1.6,
    ),
    Writer(
        "greetings",
        introduce,
        (
            "My name is {name}.",
            "I am {name}.",
            "Hello, I am {name}.",
            "Hi, my name is {name}!",
            "You can call me {name}.",
        ),
        ("Hello, my name is {name}.",),
        1.2,
    ),
    Writer(
        "thanks",
        _one_of("You are welcome!", "You are welcome! Is there anything else you would like to know?"),
        (
            "Thank you!",
            "Thanks!",
            "Thank you very much.",
            "Thanks a lot!",
            "Great, thank you!",
            "Many thanks!",
            "That helps, thanks.",
            "Thanks",
        ),
        ("Thank you so much!",),
        1.0,
    ),
    Writer(
        "goodbyes",
        _one_of("Goodbye! Have a nice day!", "Goodbye! It was nice to talk to you."),
        ("Goodbye!", "Bye!", "See you later!", "Good night!", "I have to go now.", "Bye bye", "That is all for today."),
        ("Goodbye, see you soon!",),
        0.9,
    ),
    Writer(
        "about me",
        _one_of(f"I am a small demo model. I can talk about {LIST}, and I can tell short stories."),
        (
            "Who are you?",
            "What are you?",
            "What can you do?",
            "What do you know?",
            "Tell me about yourself.",
            "What can I ask you?",
            "How can you help me?",
            "Can you help me?",
            "Help",
            "Are you a robot?",
            "Are you a person?",
            "What is your name?",
            "Introduce yourself.",
        ),
        ("What are you able to do?", "Please tell me who you are."),
        1.6,
    ),
    Writer(
        "about me",
        _one_of("I was trained on text that a small program wrote. I am only a demo."),
        (
            "Who made you?",
            "How were you made?",
            "How were you trained?",
            "Where do you come from?",
            "Are you ChatGPT?",
            "Which model are you?",
        ),
        ("Who trained you?",),
        0.7,
    ),
    Writer(
        "moods",
        _one_of(
            "I am sorry to hear that. A warm cup of tea and a good friend may help.",
            "I am sorry. I hope you feel better soon.",
        ),
        ("I am sad.", "I am not well.", "I feel bad today.", "I am tired.", "I had a bad day.", "I feel lonely."),
        ("I am so sad today.",),
        0.7,
    ),
    Writer(
        "moods",
        _one_of("That is wonderful! I am glad to hear it.", "How nice! Enjoy the day."),
        (
            "I am happy.",
            "I feel great today.",
            "I had a good day.",
            "Today is a beautiful day.",
            "I am in a good mood.",
            "It is my birthday.",
        ),
        ("I feel very happy today.",),
        0.7,
    ),
    Writer(
        "jokes",
        _one_of(
            "Why did the cow cross the road? To get to the moo-vies!",
            "What do you call a sleeping bear? A bear that you should not wake!",
            "Why is six afraid of seven? Because seven eight nine!",
        ),
        ("Tell me a joke.", "Do you know a joke?", "Make me laugh.", "Say something funny.", "A joke, please."),
        ("Please tell me a funny joke.",),
        0.8,
    ),
)
