"""Threads of which one runs at a time, from a named point to its next one, as whoever steers them says."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from threading import Semaphore, Thread, current_thread

from hitproof.engine.soak.killed import Over

__all__ = ["Baton"]

PATIENCE = 120.0
"""Seconds of real time in which a step must end, however busy the machine is."""


class _Player:
    def __init__(self, name: str, body: Callable[[], None]) -> None:
        self.name, self.body = name, body
        self.go = Semaphore(0)
        self.point = "begin"
        self.done = False
        self.thread: Thread | None = None


class Baton:
    """Steers actors, each in a thread of its own.

    Args:
        bodies: What each actor does, by name.
    """

    def __init__(self, bodies: Mapping[str, Callable[[], None]]) -> None:
        self._players = {name: _Player(name, body) for name, body in bodies.items()}
        self._back = Semaphore(0)
        self._over = False
        self.error = ""
        """What an actor failed with; empty where none has."""
        for player in self._players.values():
            player.thread = Thread(target=self._play, args=(player,), name=player.name, daemon=True)
            player.thread.start()
            self._wait()

    def at(self, point: str) -> None:
        """An actor waits here for its next step; whoever is no actor goes on.

        Raises:
            Over: The run has ended.
        """
        player = self._players.get(current_thread().name)
        if player is None or player.thread is not current_thread():
            return
        if self._over:
            raise Over
        player.point = point
        self._back.release()
        player.go.acquire()
        if self._over:
            raise Over

    def points(self) -> dict[str, str]:
        """Where each actor that has not ended waits, by its name."""
        return {name: player.point for name, player in self._players.items() if not player.done}

    def step(self, name: str) -> None:
        """Let one actor go on to its next point, or to its end."""
        self._players[name].go.release()
        self._wait()

    def close(self) -> None:
        """Let every actor unwind."""
        self._over = True
        for player in self._players.values():
            if not player.done:
                self.step(player.name)
            if player.thread is not None:
                player.thread.join()

    def _play(self, player: _Player) -> None:
        try:
            self.at("begin")
            player.body()
        except Over:
            pass
        except Exception as error:
            if not self._over:
                last = traceback.extract_tb(error.__traceback__)[-1]
                self.error = f"{player.name}: {type(error).__name__}: {error} ({last.name})"
        finally:
            player.done = True
            self._back.release()

    def _wait(self) -> None:
        if not self._back.acquire(timeout=PATIENCE):
            raise TimeoutError(f"nobody has reached a point: {self.points()}")
