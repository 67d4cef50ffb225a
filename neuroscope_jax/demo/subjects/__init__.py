"""The subjects the demo model is taught, one file each."""

from neuroscope_jax.demo.subjects import (
    animals,
    calendar,
    kitchen,
    nature,
    numbers,
    off_topic,
    people,
    places,
    stories,
    talk,
    words,
)

FAMILIES = (
    *places.FAMILIES,
    *numbers.FAMILIES,
    *animals.FAMILIES,
    *calendar.FAMILIES,
    *words.FAMILIES,
    *nature.FAMILIES,
    *people.FAMILIES,
    *kitchen.FAMILIES,
    *talk.FAMILIES,
    *stories.FAMILIES,
    *off_topic.FAMILIES,
)

__all__ = ["FAMILIES"]
