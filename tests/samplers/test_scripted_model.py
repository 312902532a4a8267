"""The scripted model answers as its script has it and counts what a provider would charge."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import httpx
import openai
import pytest

from tests.samplers.scripted_model import Call, Script, ScriptedModel, Turn

ROOT = Path(__file__).parents[2]
HELLO = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def test_turns_follow_the_place_in_the_conversation() -> None:
    with ScriptedModel([Turn(calls=(Call("bash", {"command": "ls"}),)), Turn(text="done")]) as model:
        client = openai.OpenAI(base_url=model.url, api_key="k", max_retries=0)
        first = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "go"}])
        call = first.choices[0].message.tool_calls
        assert call
        assert json.loads(call[0].function.arguments) == {"command": "ls"}  # type: ignore[union-attr]
        answered = [{"role": "user", "content": "go"}, first.choices[0].message.model_dump(exclude_none=True)]
        second = client.chat.completions.create(model="m", messages=answered)  # type: ignore[arg-type]
        assert second.choices[0].message.content == "done"
        client.close()


def test_scripts_are_chosen_by_what_the_request_has() -> None:
    scripts = [Script(match="title", turns=(Turn(text="A title"),)), Script(turns=(Turn(text="other"),))]
    with ScriptedModel(scripts) as model:
        titled = {"messages": [{"role": "user", "content": "write a title"}]}
        texts = [
            httpx.post(f"{model.url}/chat/completions", json=body).json()["choices"][0]["message"]["content"]
            for body in (titled, HELLO)
        ]
        assert texts == ["A title", "other"]


def test_a_repeated_key_is_paid_once_even_after_the_server_was_killed(tmp_path: Path) -> None:
    log = tmp_path / "paid.jsonl"
    for _ in range(2):
        with ScriptedModel([Turn(text="hi")], paid_log=log) as model:
            for key in ("a", "a", "b"):
                httpx.post(f"{model.url}/chat/completions", json=HELLO, headers={"Idempotency-Key": key})
            assert model.paid == 2


def test_the_next_prompt_begins_with_prompt_and_answer_in_token_ids() -> None:
    with ScriptedModel([Turn(text="one two", calls=(Call("ls"),)), Turn(text="end")], token_ids=True) as model:
        wanted = HELLO | {"return_token_ids": True, "logprobs": True}
        first = httpx.post(f"{model.url}/chat/completions", json=wanted).json()
        choice = first["choices"][0]
        messages = [*wanted["messages"], choice["message"], {"role": "tool", "content": "x"}]  # type: ignore[misc]
        second = httpx.post(f"{model.url}/chat/completions", json=wanted | {"messages": messages}).json()
        whole = first["prompt_token_ids"] + choice["token_ids"]
        assert second["prompt_token_ids"][: len(whole)] == whole
        assert len(choice["logprobs"]["content"]) == len(choice["token_ids"])


@pytest.mark.parametrize(("fault", "times"), [("429", 1), ("500", 1), ("cut", 1), ("refuse", 1)])
def test_a_fault_passes_after_its_times(fault: str, times: int) -> None:
    with ScriptedModel([Turn(text="hi", fault=fault, times=times)]) as model:
        url = f"{model.url}/chat/completions"
        if fault in ("cut", "refuse"):
            with pytest.raises(httpx.TransportError):
                httpx.post(url, json=HELLO)
        else:
            assert httpx.post(url, json=HELLO).status_code == int(fault)
        assert httpx.post(url, json=HELLO).json()["choices"][0]["message"]["content"] == "hi"


def test_it_serves_a_script_file_as_a_process(tmp_path: Path) -> None:
    script = tmp_path / "turns.json"
    script.write_text(json.dumps([{"text": "from a file"}]))
    command = [sys.executable, "-m", "tests.samplers.scripted_model", "--script", str(script)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        message = httpx.post(f"{url}/messages", json=HELLO | {"max_tokens": 5}).json()
        assert message["content"] == [{"type": "text", "text": "from a file"}]
        process.kill()
