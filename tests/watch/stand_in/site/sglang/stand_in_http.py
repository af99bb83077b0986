"""The HTTP side of the stand-in: answers with the field names of one SGLang release."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TEXT = (
    " a city that many people visit every year. It lies on a river, and its old town is known for narrow streets, "
    "quiet squares and good bread. In the morning the market opens, and farmers bring what they have grown."
)
NOISE = "Zugriff自动ระบบ_RESTконтрольالشبكةπλήρη การตั้ง 数据库 метод قائمة ฟังก์ชัน"


def parse(release: str) -> tuple[int, ...]:
    """0.5.13.post1 -> (0, 5, 13, 1); enough to order the releases that are asked for here."""
    numbers = tuple(int(n) for n in re.findall(r"\d+", release))
    return numbers if "post" in release else (*numbers, 0)


class Server:
    """What the handler needs to know. ``up`` is False until the ready line was played."""

    def __init__(self, play: dict[str, Any], args: dict[str, Any], log: Any) -> None:
        self.play, self.args, self.log = play, args, log
        self.release = parse(str(play.get("release", "0.5.13.post1")))
        self.spec = args.get("speculative_algorithm")
        self.up = False
        self.steps = self.tokens = self.requests = 0
        self.lock = threading.Lock()
        self.stop: Any = None

    def start(self) -> None:
        host, port = self.args["host"], self.args["port"]
        if ":" in host:
            import socket

            ThreadingHTTPServer.address_family = socket.AF_INET6
        server = ThreadingHTTPServer((host, port), _handler(self))
        if self.args.get("ssl_certfile"):
            import ssl

            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.args["ssl_certfile"], self.args["ssl_keyfile"])
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

        def stop() -> None:
            server.shutdown()
            server.server_close()

        self.stop = stop

    # -- answers -------------------------------------------------------------------------------------

    def model_info(self) -> dict[str, Any]:
        return {
            "model_path": self.args["model_path"],
            "is_generation": not self.play.get("embedding"),
            "preferred_sampling_params": None,
        }

    def server_info(self) -> dict[str, Any]:
        off = bool(self.play.get("overlap_off"))
        state: dict[str, Any] = {"last_gen_throughput": 100.0, "disable_overlap_schedule": off}
        if self.spec and self.steps:
            state["avg_spec_accept_length"] = self.tokens / self.steps
        return {
            **{k: v for k, v in self.args.items() if k != "argv"},
            "disable_overlap_schedule": off,
            "internal_states": [state],
            "version": self.play.get("release", "0.5.13.post1"),
        }

    def generate(self, body: dict[str, Any]) -> tuple[int, Any]:
        kind = self.play.get("answers", "text")
        if kind == "error":
            return 500, {"error": {"message": "CUDA error: device-side assert triggered"}}
        if kind == "abort":
            return 200, {"text": "", "meta_info": {"finish_reason": {"type": "abort", "message": "no slot"}}}
        if kind == "empty":
            return 200, {"text": "", "meta_info": {"completion_tokens": 0, "finish_reason": {"type": "stop"}}}
        ids_only = bool(self.args.get("skip_tokenizer_init"))
        if ids_only and "input_ids" not in body:
            return 400, {"error": {"message": "input_ids should be given when skip_tokenizer_init is on"}}
        if self.args.get("disaggregation_mode") and not body.get("bootstrap_host"):
            return 400, {"error": {"message": "bootstrap_host is missing"}}
        wanted = int(body["sampling_params"]["max_new_tokens"])
        room = self.play.get("room", 4096)
        if wanted > room:
            return 400, {"error": {"message": f"the request is longer than the {room} tokens there are"}}
        stop_at = self.play.get("stops_at")
        tokens = min(wanted, stop_at) if stop_at and not body["sampling_params"].get("ignore_eos") else wanted
        accept = float(self.play.get("accept", 2.5)) if self.spec else 1.0
        steps = max(math.ceil((tokens - 1) / accept), 1)
        time.sleep(steps * float(self.play.get("step_s", 0)))
        ids = [7] * tokens if kind == "repeat" else [100 + (i * 37) % 900 for i in range(tokens)]
        text = {"noise": NOISE, "repeat": "!" * tokens, "broken": "\ufffd x" * tokens}.get(kind, TEXT)
        meta: dict[str, Any] = {
            "id": "0",
            "finish_reason": {"type": "length", "length": tokens},
            "prompt_tokens": 5,
            "completion_tokens": tokens,
            "e2e_latency": 0.1,
        }
        if self.spec and not self.play.get("silent_spec"):
            with self.lock:
                self.steps += steps
                self.tokens += tokens
            meta["spec_verify_ct"] = steps
            drafts = int(self.args.get("speculative_num_draft_tokens") or 4) - 1
            if self.release >= (0, 5, 3, 2):
                meta["spec_accept_length"] = tokens / steps
                meta["spec_accept_rate"] = max(tokens - 1 - steps, 0) / (steps * drafts)
            if self.release >= (0, 5, 12, 0):
                meta["spec_num_correct_drafts"] = max(tokens - 1 - steps, 0)
                meta["spec_num_proposed_drafts"] = steps * drafts
        answer: dict[str, Any] = {"meta_info": meta}
        if ids_only or self.release >= (0, 5, 0, 0):
            answer["output_ids"] = ids
        if not ids_only:
            answer["text"] = text
        return 200, answer

    def openai(self, body: dict[str, Any], chat: bool) -> tuple[int, Any]:
        tokens = int(body["max_tokens"])
        choice = {"message": {"role": "assistant", "content": TEXT}} if chat else {"text": TEXT}
        usage = {"prompt_tokens": 5, "completion_tokens": tokens}
        return 200, {"choices": [{"index": 0, "finish_reason": "length", **choice}], "usage": usage}


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def _send(self, status: int, data: Any) -> None:
            payload = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)
            client = f"{self.client_address[0]}:{self.client_address[1]}"
            server.log(f'INFO:     {client} - "{self.command} {self.path} HTTP/1.1" {status} OK')

        def _route(self, body: dict[str, Any]) -> tuple[int, Any]:
            play, path = server.play, self.path
            base = play.get("base_path", "")
            if base:
                if not path.startswith(base + "/"):
                    return 404, {"detail": "Not Found"}
                path = path[len(base) :]
            if path.startswith("/health"):
                return (200 if server.up else 503), ""
            key = server.args.get("api_key")
            if key and self.headers.get("Authorization") != f"Bearer {key}":
                return 401, {"error": "Unauthorized"}
            with server.lock:
                server.requests += 1
                if server.requests <= play.get("busy_503", 0):
                    return 503, {"error": "starting"}
            new = server.release >= (0, 5, 6, 0)
            if path in ("/get_model_info", "/model_info"):
                return (200, server.model_info()) if new or "get" in path else (404, {"detail": "Not Found"})
            if path in ("/get_server_info", "/server_info"):
                return (200, server.server_info()) if new or "get" in path else (404, {"detail": "Not Found"})
            if play.get("embedding"):
                return self._embedding(path)
            if path == "/generate" and not play.get("no_generate"):
                return server.generate(body)
            if path in ("/v1/completions", "/v1/chat/completions"):
                return server.openai(body, chat="chat" in path)
            return 404, {"detail": "Not Found"}

        def _embedding(self, path: str) -> tuple[int, Any]:
            if server.play.get("rerank"):
                if path == "/v1/rerank":
                    return 200, [{"score": 0.9, "document": "", "index": 0}, {"score": 0.1, "index": 1}]
                return 400, {"message": "this model only reranks"}
            values = server.play.get("vector", [0.1, -0.2, 0.3])
            if path == "/v1/embeddings":
                return 200, {"object": "list", "data": [{"object": "embedding", "embedding": values}]}
            if path == "/encode":
                return 200, {"embedding": values, "meta_info": {"prompt_tokens": 4}}
            return 404, {"detail": "Not Found"}

        def do_GET(self) -> None:
            self._send(*self._route({}))

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._send(*self._route(json.loads(raw or b"{}")))

    return Handler
