"""Puts the same questions about speed to Tanren and to PyTorch, in turn.

`scripts/bench` starts this. Tanren answers through the program in
tests/benches/side_by_side.rs; PyTorch runs here, in eager mode, on dense float
tensors that lie ready, with its fused Adam. Every figure is the median of several
rounds (the argument, 5 by default), ratios are medians of the ratios within a round.
"""

import os
import platform
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
SECONDS = 0.3
CORES = torch.get_num_threads()
PLANES, ROWS, COLUMNS = 4, 8, 8
SQUARES = ROWS * COLUMNS
CONV_LAYERS, DENSE = 3, 64
ONES, SIGMOID, CHUNK = 12, 16, 16
MLP, CONV = "mlp:50", "conv:32"


class Tanren:
    """The program that answers for Tanren."""

    def __init__(self):
        command = ["cargo", "bench", "--quiet", "--bench", "side_by_side"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, *words):
        """Seconds, and what was counted."""
        print(*words, file=self.process.stdin, flush=True)
        seconds, *counts = self.process.stdout.readline().split()
        return float(seconds), *map(int, counts)


def network(name):
    kind, width = name.split(":")
    width = int(width)
    if kind == "mlp":
        layers = [nn.Flatten(), nn.Linear(PLANES * SQUARES, width), nn.Sigmoid(), nn.Linear(width, 1)]
    else:
        layers = []
        for layer in range(CONV_LAYERS):
            layers += [nn.Conv2d(width if layer else PLANES, width, 3, padding=1), nn.ReLU()]
        layers += [nn.Flatten(), nn.Linear(width * SQUARES, DENSE), nn.ReLU(), nn.Linear(DENSE, 1)]
    return nn.Sequential(*layers, nn.Sigmoid())


def planes(batch):
    """About as many ones as a position of March has."""
    generator = torch.Generator().manual_seed(1)
    return (torch.rand(batch, PLANES, ROWS, COLUMNS, generator=generator) < 12 / 256).float()


def median_seconds(run):
    run()
    seconds, started = [], time.perf_counter()
    while len(seconds) < 3 or time.perf_counter() - started < SECONDS:
        before = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - before)
    return statistics.median(seconds)


def torch_step(name, batch, threads):
    torch.set_num_threads(threads)
    net, inputs, targets = network(name), planes(batch), torch.full((batch,), 0.5)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001, fused=True)

    def step():
        optimizer.zero_grad()
        loss = ((2 * net(inputs).squeeze(1) - 1 - targets) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return median_seconds(step)


def torch_evaluate(name, batch, threads):
    torch.set_num_threads(threads)
    net, inputs = network(name), planes(batch)
    with torch.inference_mode():
        return median_seconds(lambda: 2 * net(inputs) - 1)


def alternate(*questions):
    """One list of ROUNDS answers for each question, asked in turn."""
    return list(zip(*[[question() for question in questions] for _ in range(ROUNDS)]))


def ratio(numbers, others):
    return statistics.median(a / b for a, b in zip(numbers, others))


def show(seconds):
    value = statistics.median(seconds)
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} us"


def per_second(number):
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= factor:
            return f"{number / factor:.3g} {unit}"
    return f"{number:.3g}"


def table(title, header, rows):
    print(f"\n### {title}\n")
    print("| " + " | ".join(header) + " |")
    print("| " + " | ".join("---" for _ in header) + " |")
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def steps(tanren):
    for name in (MLP, CONV):
        for batch in (256, 1024, 4096):
            for threads in sorted({1, CORES}):
                own, burn, theirs = alternate(
                    lambda: tanren.ask("step", name, batch, threads)[0],
                    lambda: tanren.ask("step-burn", name, batch, threads)[0],
                    lambda: torch_step(name, batch, threads),
                )
                yield (
                    name, str(batch), str(threads), show(own), show(burn), show(theirs),
                    f"{ratio(theirs, own):.2f}", f"{ratio(burn, own):.2f}",
                )


def evaluations(tanren, name, batch):
    """Positions a second on one thread."""

    def own(*question):
        seconds, count = tanren.ask(*question)
        return seconds / count

    anew, children, burn, theirs = alternate(
        lambda: own("evaluate", name, batch),
        lambda: own("children", name),
        lambda: own("evaluate-burn", name, batch),
        lambda: torch_evaluate(name, batch, 1) / batch,
    )
    rates = [per_second(1 / statistics.median(times)) for times in (anew, children, burn, theirs)]
    return (name, *rates, f"{ratio(theirs, anew):.2f}", f"{ratio(theirs, children):.2f}")


def generation(tanren, name, games):
    """One row: on one thread, on all, and how much faster that is."""
    one, all_cores, theirs = alternate(
        lambda: tanren.ask("generate", name, games, 1),
        lambda: tanren.ask("generate", name, games, CORES),
        lambda: torch_evaluate(name, 1024, CORES) / 1024,
    )
    seconds = [statistics.median(answer[0] for answer in answers) for answers in (one, all_cores)]
    count = all_cores[0][2]
    evaluation = [answer[0] / answer[2] for answer in all_cores]
    return (
        name, str(games), *(per_second(games / s) for s in seconds),
        f"{ratio([a[0] for a in one], [a[0] for a in all_cores]):.2f}",
        per_second(count / seconds[1]), f"{ratio(theirs, evaluation):.2f}",
    )


def floor(name):
    """What one evaluation cannot do without: multiply-adds, and bytes from some cache.

    Inputs are ONES ones, so the first layer is additions of rows. A sigmoid counts
    as SIGMOID multiply-adds. Weights of dense and 3x3 layers serve CHUNK positions
    at a time; behind each layer a signal is written and read.
    """
    kind, width = name.split(":")
    width = int(width)
    if kind == "mlp":
        return (ONES + 1 + SIGMOID) * width + SIGMOID, 4 * (ONES + 2) * width
    weights = (CONV_LAYERS - 1) * 9 * width * width + SQUARES * width * DENSE + DENSE
    operations = ONES * 9 * width + SQUARES * (CONV_LAYERS - 1) * 9 * width * width
    signals = 2 * CONV_LAYERS * SQUARES * width
    rows = ONES * 9 * width
    return (
        operations + SQUARES * width * DENSE + DENSE + SIGMOID,
        4 * (rows + signals + weights / CHUNK),
    )


def floors(tanren):
    """How far one thread is from the multiply-adds that the processor can do."""

    def ceiling():
        seconds, count = tanren.ask("multiply-adds")
        return count / seconds

    (ceilings,) = alternate(ceiling)
    yield "multiply-adds in registers", "", "", per_second(statistics.median(ceilings)) + "/s", "1"
    for name in (MLP, CONV):
        operations, size = floor(name)
        for what, times, question in (
            ("evaluation", 1, ("evaluate", name, 1024)),
            # Back: once more for the weights, once more for the signals.
            ("training step of 1024", 3, ("step", name, 1024, 1)),
        ):

            def rate():
                seconds, count = tanren.ask(*question)
                return times * operations * count / seconds

            ceilings, rates = alternate(ceiling, rate)
            yield (
                f"{name}, {what}", per_second(times * operations), per_second(times * size),
                per_second(statistics.median(rates)) + "/s", f"{ratio(rates, ceilings):.2f}",
            )


def sizes(tanren):
    for name in ("mlp:16", MLP, "mlp:128", "mlp:512", "conv:8", "conv:16", CONV, "conv:64", "conv:128"):
        step, evaluate, theirs = alternate(
            lambda: tanren.ask("step", name, 256, CORES)[0],
            lambda: tanren.ask("children", name),
            lambda: torch_step(name, 256, CORES),
        )
        rate = 1 / statistics.median(answer[0] / answer[1] for answer in evaluate)
        numbers = sum(p.numel() for p in network(name).parameters())
        yield (
            name, str(numbers), show(step), show(theirs), f"{ratio(theirs, step):.2f}",
            per_second(rate),
        )


def machine():
    with open("/proc/cpuinfo", encoding="ascii") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    load = os.getloadavg()[0]
    return f"{names[0] if names else platform.processor()}, {CORES} cores, load {load:.1f} before"


def main():
    tanren = Tanren()
    print(f"{machine()}; PyTorch {torch.__version__}. Medians of {ROUNDS} rounds, asked in turn.", flush=True)
    table(
        "Training step, Adam included",
        ("network", "batch", "threads", "Tanren", "burn", "PyTorch", "PyTorch / Tanren", "burn / Tanren"),
        steps(tanren),
    )
    table(
        "Evaluations a second, one thread",
        ("network", "anew", "from the parent", "burn", "PyTorch", "anew / PyTorch", "from the parent / PyTorch"),
        (evaluations(tanren, name, 1024) for name in (MLP, CONV)),
    )
    table(
        f"Generator: rules, network, samples; PyTorch is its bare forward pass on {CORES} threads",
        ("network", "games in parallel", "games/s, 1 thread", f"games/s, {CORES} threads", "scaling",
         "evaluations/s", "evaluations / PyTorch's"),
        (generation(tanren, name, games) for name in (MLP, CONV) for games in (3, 12, 48, 192)),
    )
    table(
        "Distance from the floor, one thread",
        ("what", "multiply-adds a position", "bytes a position", "multiply-adds/s", "share of the ceiling"),
        floors(tanren),
    )
    table(
        f"Growth with the network, steps of 256 on {CORES} threads",
        ("network", "parameters", "step", "PyTorch", "PyTorch / Tanren", "evaluations/s, one thread"),
        sizes(tanren),
    )


if __name__ == "__main__":
    main()
