"""The queue by itself: whose turn it is, how many may wait, who may leave."""

import pytest

from neuroscope_jax.engine.requests import GenerationRequest, QueueFull
from neuroscope_jax.engine.waiting import Job, WaitingLine


def job(client="", number=1, continues=False):
    return Job(GenerationRequest((number,), 1, client=client, continues=continues), print, lambda _: None)


def filled(line, *clients):
    jobs = [job(client, number) for number, client in enumerate(clients)]
    for one in jobs:
        line.put(one)
    return jobs


def taken(line, count):
    return [(found.request.client, found.request.prompt_ids[0]) for found in (line.take() for _ in range(count))]


def test_one_client_is_served_in_order():
    line = WaitingLine(9)
    filled(line, *"aaaa")
    assert taken(line, 4) == [("a", 0), ("a", 1), ("a", 2), ("a", 3)]


def test_clients_take_turns():
    line = WaitingLine(9)
    filled(line, *"aaaabbc")
    assert [client for client, _ in taken(line, 7)] == list("abcabaa")


def test_who_comes_back_queues_behind_the_others():
    line = WaitingLine(9)
    filled(line, *"aab")
    assert taken(line, 1) == [("a", 0)]
    line.put(job("b", 7))
    line.put(job("a", 8))
    assert taken(line, 4) == [("b", 2), ("a", 1), ("b", 7), ("a", 8)]


def test_the_bound_is_over_all_clients_and_spares_what_goes_on():
    line = WaitingLine(3)
    filled(line, *"abc")
    with pytest.raises(QueueFull, match="3 requests"):
        line.put(job("d"))
    line.put(job("a", continues=True))
    taken(line, 2)
    line.put(job("d"))


def test_leaving_frees_the_place_once():
    line = WaitingLine(2)
    first, second = filled(line, *"aa")
    assert line.remove(first)
    assert not line.remove(first)
    line.put(job("b"))
    assert taken(line, 2) == [("a", 1), ("b", 1)]
    assert not line.remove(second)


def test_closing_gives_back_who_waits():
    line = WaitingLine(3)
    jobs = filled(line, *"aba")
    assert set(line.close()) == set(jobs)
    assert line.take() is None
    with pytest.raises(QueueFull, match="closed"):
        line.put(job("a", continues=True))
