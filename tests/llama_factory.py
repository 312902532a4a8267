"""What LLaMA-Factory trains of a folder of rows, by the rules of its code.

Those of its alpaca and ShareGPT converters and of its function formatter (0.9.5, `data/converter.py`,
`data/formatter.py`, `data/processor/supervised.py`), which drop a malformed row without a message that stops the
training. As a program it prints how many rows of some folders are trained, and fails where one would be dropped:
`python -m tests.llama_factory FOLDER...`
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def read_as_llama_factory(folder: Path, *, mask_history: bool = False) -> list[Row]:
    """Return the rows that are trained, each with the `texts` that have a loss, the `prompt` before the last of them,
    and the `system` prompt."""
    info = next(iter(json.loads((folder / "dataset_info.json").read_text()).values()))
    convert = {"sharegpt": convert_sharegpt, "alpaca": convert_alpaca}[info["formatting"]]
    rows = [json.loads(line) for line in (folder / info["file_name"]).read_text().splitlines()]
    return [example for row in rows if (example := convert(row, info, mask_history=mask_history)) is not None]


def convert_alpaca(row: Row, info: Row, *, mask_history: bool) -> Row | None:
    """Return an alpaca row as it is trained; None where it is dropped."""
    columns = info["columns"]
    prompt: list[str] = []
    for said, answer in row[columns["history"]]:
        prompt += [said, answer]
    query = [row[columns[name]] for name in ("prompt", "query") if row[columns[name]]]
    prompt.append("\n".join(query))
    answer = row[columns["response"]]
    if not isinstance(answer, str) or len(prompt) % 2 != 1:
        return None
    assert all(isinstance(text, str) for text in prompt)
    texts = [answer] if mask_history else [*prompt[1::2], answer]
    return {"texts": texts, "prompt": prompt, "system": row[columns["system"]]}


def convert_sharegpt(row: Row, info: Row, *, mask_history: bool) -> Row | None:
    """Return a ShareGPT row as it is trained; None where it is dropped."""
    tags, columns = info["tags"], info["columns"]
    odd, even = (tags["user_tag"], tags["observation_tag"]), (tags["assistant_tag"], tags["function_tag"])
    messages = row[columns["messages"]]
    speakers = [message[tags["role_tag"]] for message in messages]
    accepted = all(speaker in (odd, even)[at % 2] for at, speaker in enumerate(speakers))
    if not accepted or not messages or len(messages) % 2:
        return None  # the converter empties it, and the processor drops it
    texts = []
    for message in messages[1::2]:
        content = message[tags["content_tag"]]
        is_call = message[tags["role_tag"]] == tags["function_tag"]
        texts.append(format_function(content) if is_call else content)
    tools = row[columns["tools"]] if "tools" in columns else ""
    if tools:
        for tool in json.loads(tools):  # the tool formatter reads these keys
            assert tool["name"]
            assert tool["description"]
            assert tool["parameters"]["properties"] is not None
    prompt = [message[tags["content_tag"]] for message in messages[:-1]]
    return {"texts": texts[-1:] if mask_history else texts, "prompt": prompt, "system": row[columns["system"]]}


def format_function(content: str) -> str:
    """Return the text of a turn of calls; one that is no JSON raises, as in the function formatter."""
    tagged = re.search(r"<tool_call>(.*?)</tool_call>", content, re.DOTALL)
    thought = re.search(r"<think>(.*?)</think>", content, re.DOTALL)
    before = content.replace(tagged[0], "") if tagged else thought[0] if thought else ""
    calls = json.loads(tagged[1] if tagged else content.replace(thought[0], "") if thought else content)
    listed = calls if isinstance(calls, list) else [calls]
    return before + "".join(f"<{call['name']} {json.dumps(call['arguments'])}>" for call in listed)


def main(folders: list[str]) -> int:
    n_dropped = 0
    for folder in map(Path, folders):
        info = next(iter(json.loads((folder / "dataset_info.json").read_text()).values()))
        n_rows = len((folder / info["file_name"]).read_text().splitlines())
        trained = read_as_llama_factory(folder, mask_history=(folder / "llamafactory.yaml").exists())
        n_texts = sum(len(row["texts"]) for row in trained)
        sys.stdout.write(f"LLaMA-Factory trains {len(trained)} of {n_rows} rows, {n_texts} answers, of {folder}\n")
        n_dropped += n_rows - len(trained)
    return int(n_dropped > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
