"""Latency, throughput and streams of the model gateway, against the model server alone and LiteLLM's proxy."""
