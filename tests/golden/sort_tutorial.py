"""Extracts the three forms of the graph and the answers to the queries from the text of the MSC
tutorial on graphs, and sorts attributes.

    python3 sort_tutorial.py TUTORIAL.txt

writes conv_relu.txt, conv_relu.json, conv_relu.prototxt and conv_relu_queries.txt next to this
file. The tutorial prints attributes in the order of a hash table; here they are sorted by key. In
prototxt everything in layer_param counts as an attribute. The tutorial's text has lost blank
lines at the end of an output. Its other outputs show that a printed node ends with one line break
and a printed graph with two. The words that its loops print before each node are translated into
English. The parent is printed once here, because the loop prints the node and then the same text
again.
"""

import pathlib
import re
import sys


def cut(text, begin, end):
    start = text.index(begin)
    return text[start:text.index(end, start)].rstrip("\n")


def sort_printed(text):
    def sort_line(match):
        return "  ATTRS: " + " ".join(sorted(match[1].split())) + " \n"
    return re.sub(r"  ATTRS: (.*) \n", sort_line, text) + "\n\n"


def sort_json(text):
    def sort_map(match):
        entries = sorted(line.strip().rstrip(",") for line in match[1].splitlines() if line.strip())
        return '"attrs": {\n' + ", \n".join("        " + e for e in entries) + "\n      }"
    return re.sub(r'"attrs": \{\n(.*?)\n      \}', sort_map, text, flags=re.S)


def sort_prototxt(text):
    def sort_block(match):
        return "  layer_param {\n" + "\n".join(sorted(match[1].splitlines())) + "\n  }"
    return re.sub(r"  layer_param \{\n(.*?)\n  \}", sort_block, text, flags=re.S)


LABELS = {"conv2d 节点": "conv2d joint", "input 节点": "input", "核心 conv 节点": "found joint",
          "父节点": "parent", "子节点": "child"}


def sort_queries(text):
    for label, word in LABELS.items():
        text = re.sub(f"^{label} ", f"{word} ", text, flags=re.M)
    text = re.sub(r"^parent (.+?\n)\1", r"parent \1", text, flags=re.M | re.S)
    return sort_printed(text)


def main():
    text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    folder = pathlib.Path(__file__).parent
    printed = cut(text, "main <INPUTS", "type(graph)")
    json = cut(text, '{\n  "name": "main"', "\n\n")
    prototxt = cut(text, 'name: "main"', "\n\n")
    found = cut(text, "conv2d 节点 ID_1", "MSCGraph 的基本结构")
    around = cut(text, "producer ID_1", "Codegen 模块")
    (folder / "conv_relu.txt").write_text(sort_printed(printed), encoding="utf-8")
    (folder / "conv_relu.json").write_text(sort_json(json), encoding="utf-8")
    (folder / "conv_relu.prototxt").write_text(sort_prototxt(prototxt), encoding="utf-8")
    queries = sort_queries(found) + sort_queries(around)
    (folder / "conv_relu_queries.txt").write_text(queries, encoding="utf-8")


main()
