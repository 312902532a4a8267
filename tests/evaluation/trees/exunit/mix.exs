defmodule Greet.MixProject do
  use Mix.Project
  def project, do: [app: :greet, version: "0.1.0"]
end
