"""Forked children during predictions, and that a child that hangs or fails is found."""

import os
import time

import pytest

from psilearn_lab.fuzz import processes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


def test_defects_of_children_are_found(monkeypatch):
    monkeypatch.setattr(processes, "FORK_SECONDS", 0.3)
    assert processes.fork_once(lambda: True).kind == "accepted"
    assert processes.fork_once(lambda: False).reason == "the child ended with status 3"
    assert processes.fork_once(lambda: time.sleep(60)).place == "hang"
