defmodule Mergemill.Formatter do
  @moduledoc "Writes every ExUnit test as a JSON line for mergemill to the file that MERGEMILL_OUT names."
  use GenServer

  def init(_options), do: {:ok, File.open!(System.fetch_env!("MERGEMILL_OUT"), [:append, :utf8])}

  def handle_cast({:test_finished, test}, out) do
    {status, message} = status(test.state)

    IO.write(out, [
      ~s({"file":), quoted(test.tags[:file] || ""),
      ~s(,"name":), quoted(inspect(test.module) <> " " <> to_string(test.name)),
      ~s(,"status":"), status, ~s(","message":), quoted(message),
      ~s(,"seconds":), :io_lib.format("~.6f", [test.time / 1_000_000]), "}\n"
    ])

    {:noreply, out}
  end

  def handle_cast(_event, out), do: {:noreply, out}

  defp status(nil), do: {"passed", ""}
  defp status({:skipped, reason}), do: {"skipped", to_string(reason)}
  defp status({:excluded, reason}), do: {"skipped", to_string(reason)}
  defp status({:invalid, _module}), do: {"error", "setup_all failed"}

  defp status({:failed, [{_kind, %ExUnit.AssertionError{message: message}, _stack} | _]}),
    do: {"failed", to_string(message)}

  defp status({:failed, [{kind, reason, _stack} | _]}),
    do: {"failed", Exception.format_banner(kind, reason, [])}

  defp status({:failed, _failures}), do: {"failed", "failed"}

  defp quoted(text) do
    text = if String.valid?(text), do: text, else: inspect(text)
    [?", for(<<c::utf8 <- String.slice(text, 0, 2000)>>, do: character(c)), ?"]
  end

  defp character(?"), do: "\\\""
  defp character(?\\), do: "\\\\"
  defp character(c) when c < 32, do: :io_lib.format("\\u~4.16.0b", [c])
  defp character(c), do: <<c::utf8>>
end
