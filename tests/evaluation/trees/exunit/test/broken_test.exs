defmodule BrokenTest do
  use ExUnit.Case
  test "never", do: missing()
end
