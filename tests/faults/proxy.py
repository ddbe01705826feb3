#!/usr/bin/env python3
"""A link between two hosts that can be slow, cut in one direction, or cut and plugged in again: a TCP
proxy that is told what to do, a line at a time, on its standard input.

  proxy.py HOST PORT TO_HOST TO_PORT

  rate BYTES      so many bytes a second in each direction; 0: as fast as it goes
  cut head|node   holds back what goes to the head, or to the node
  heal            holds back nothing
  reset           ends all connections

It ends with its standard input. Prints "ready" once it listens."""

import contextlib
import socket
import struct
import sys
import threading
import time

PIECE = 16384


class Link:
    """What both directions of all connections share."""

    def __init__(self):
        self.rate = 0
        self.held = set()
        self.healed = threading.Condition()
        self.lanes = {"head": threading.Lock(), "node": threading.Lock()}
        self.sockets = set()

    def order(self, line):
        word, *rest = line.split()
        with self.healed:
            if word == "rate":
                self.rate = int(rest[0])
            elif word == "cut":
                self.held.add(rest[0])
            elif word == "heal":
                self.held.clear()
            elif word == "reset":
                self.reset()
            else:
                raise ValueError(line)
            self.healed.notify_all()

    def reset(self):
        for one in list(self.sockets):
            with contextlib.suppress(OSError):
                # Closing then sends RST at once.
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.shutdown(socket.SHUT_RDWR)

    def pass_gate(self, direction):
        with self.healed:
            self.healed.wait_for(lambda: direction not in self.held)

    def piece(self):
        return min(PIECE, max(512, self.rate // 50)) if self.rate else PIECE

    def send(self, direction, to, data):
        """A rate is shared by the connections: one at a time has the lane."""
        rate = self.rate
        if rate:
            with self.lanes[direction]:
                time.sleep(len(data) / rate)
        self.pass_gate(direction)
        to.sendall(data)


def pump(link, direction, source, to):
    """One direction of one connection, to its end."""
    with contextlib.suppress(OSError):
        while data := source.recv(link.piece()):
            link.send(direction, to, data)
        link.pass_gate(direction)
        to.shutdown(socket.SHUT_WR)


def carry(link, node, target):
    """One connection, from the node's to the head's. It begins when both directions are whole."""
    for direction in ("head", "node"):
        link.pass_gate(direction)
    try:
        head = socket.create_connection(target, timeout=10)
    except OSError:
        node.close()
        return
    pair = (node, head)
    for one in pair:
        one.settimeout(None)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.sockets.update(pair)
    back = threading.Thread(target=pump, args=(link, "node", head, node), daemon=True)
    back.start()
    pump(link, "head", node, head)
    back.join()
    link.sockets.difference_update(pair)
    for one in pair:
        one.close()


def accept(link, listener, target):
    while True:
        node, _ = listener.accept()
        threading.Thread(target=carry, args=(link, node, target), daemon=True).start()


def main():
    host, port, to_host, to_port = sys.argv[1:]
    link = Link()
    listener = socket.create_server((host, int(port)), backlog=128)
    threading.Thread(target=accept, args=(link, listener, (to_host, int(to_port))),
                     daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        link.order(line)


if __name__ == "__main__":
    main()
