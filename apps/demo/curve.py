"""Draws a run of `./dev demo` as docs/demo.svg: curve.py RUN > docs/demo.svg

The mean of the demo's own reward by update, the held-out shares before and after, and the updates in
which the second reward was there. Reads RUN/metrics.jsonl; needs nothing but Python."""

import json
import pathlib
import sys

WIDTH, HEIGHT = 720, 250
LEFT, RIGHT, TOP, BOTTOM = 52, 700, 30, 200


def main(run):
    lines = [json.loads(line) for line in (pathlib.Path(run) / "metrics.jsonl").read_text().splitlines()]
    # While the second reward is there, reward/mean is of both.
    points = [(line["step"], line.get("reward/exact", line["reward/mean"])) for line in lines if "reward/mean" in line]
    guests = [line["step"] for line in lines if "reward/format" in line]
    held_out = [(line["step"], line["eval/pass@1"]) for line in lines if "eval/pass@1" in line]
    last = max(step for step, _ in points)

    def x(step):
        return LEFT + (RIGHT - LEFT) * step / last

    def y(value):
        return BOTTOM - (BOTTOM - TOP) * value

    def text(at_x, at_y, words, **more):
        style = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in more.items())
        return f'<text x="{at_x:.1f}" y="{at_y:.1f}"{style}>{words}</text>'

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           'font-size="12" fill="#444">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']
    if guests:
        out.append(f'<rect x="{x(guests[0] - 0.5):.1f}" y="{TOP}" width="{x(guests[-1] + 1) - x(guests[0]):.1f}" '
                   f'height="{BOTTOM - TOP}" fill="#e8eef7"/>')
        out.append(text(x((guests[0] + guests[-1]) / 2), TOP - 8, "a second reward joined the run, and left it",
                        text_anchor="middle"))
    for share in (0, 0.25, 0.5, 0.75, 1):
        out.append(f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y(share):.1f}" y2="{y(share):.1f}" stroke="#ddd"/>')
        out.append(text(LEFT - 8, y(share) + 4, f"{share:.2f}", text_anchor="end"))
    for step in range(0, last + 1, 5):
        out.append(text(x(step), BOTTOM + 18, step, text_anchor="middle"))
    out.append(text((LEFT + RIGHT) / 2, BOTTOM + 36, "update", text_anchor="middle"))
    path = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in points)
    out.append(f'<polyline points="{path}" fill="none" stroke="#2a62a8" stroke-width="2"/>')
    out.append(text(x(points[1][0]) + 8, y(0.12), "line: share of right answers among the samples of an update",
                    fill="#2a62a8"))
    for step, value in held_out:
        out.append(f'<circle cx="{x(step):.1f}" cy="{y(value):.1f}" r="5" fill="#b5482a"/>')
        anchor = "start" if step == 0 else "end"
        out.append(text(x(step) + (9 if step == 0 else -9), y(value) + 16, f"{value:.2f}", fill="#b5482a",
                        text_anchor=anchor))
    out.append(text(x(points[1][0]) + 8, y(0.04), "dots: share on 40 problems that it never practises", fill="#b5482a"))
    return "\n".join(out + ["</svg>"])


if __name__ == "__main__":
    print(main(sys.argv[1]))
