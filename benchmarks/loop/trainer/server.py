"""A model server with OpenAI's chat completions, token ids and log-probabilities as vLLM gives them.

    python -m benchmarks.loop.trainer.server --model DIR [--port 8000] [--seed 0]

The address is printed on standard output.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks.loop.trainer.decoding import SampledAnswer, Sampler

MOST_TOKENS = 128
"""Of an answer whose request names no limit."""


class ModelServer:
    """The server, in a thread. A context manager."""

    def __init__(self, sampler: Sampler, port: int = 0) -> None:
        handler = type("Handler", (_Handler,), {"sampler": sampler})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Base URL of the API."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    sampler: ClassVar[Sampler]
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.send_json(200, {"object": "list", "data": [{"id": "tiny", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        if body.get("stream"):
            self.send_json(400, {"error": {"message": "this server does not stream"}})
            return
        answer = self.sampler.answer(
            body["messages"], temperature=body.get("temperature", 1.0), most=body.get("max_tokens") or MOST_TOKENS
        )
        self.send_json(200, build_completion(body, answer, self.sampler))

    def send_json(self, status: int, value: object) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def build_completion(body: dict[str, Any], answer: SampledAnswer, sampler: Sampler) -> dict[str, Any]:
    """Return the response: token ids and log-probabilities where the request wants them."""
    finish = "length" if answer.is_cut else "tool_calls" if answer.message.get("tool_calls") else "stop"
    choice: dict[str, Any] = {"index": 0, "message": answer.message, "finish_reason": finish}
    made: dict[str, Any] = {"id": f"chatcmpl-{secrets.token_hex(8)}", "object": "chat.completion", "created": 0}
    if body.get("return_token_ids"):
        made["prompt_token_ids"] = answer.prompt
        choice["token_ids"] = answer.tokens
    if body.get("logprobs"):
        pairs = zip(answer.tokens, answer.logprobs, strict=True)
        content = [
            {"token": sampler.tokenizer.decode([token]), "logprob": logprob, "bytes": None, "top_logprobs": []}
            for token, logprob in pairs
        ]
        choice["logprobs"] = {"content": content}
    usage = {"prompt_tokens": len(answer.prompt), "completion_tokens": len(answer.tokens)}
    return made | {
        "model": body.get("model", ""),
        "choices": [choice],
        "usage": usage | {"total_tokens": sum(usage.values())},
    }


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(options.model).eval()
    sampler = Sampler(model, AutoTokenizer.from_pretrained(options.model), options.seed)
    with ModelServer(sampler, options.port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
