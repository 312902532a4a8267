"""Domain packs: folders with tools, policy, format and validators. Those shipped are the folders of this package."""
