out=/logs/artifacts/findings.json; rm -rf -- "$out"; found=/review/findings.json; if [ -f "$found" ] && [ ! -L "$found" ]; then head -c 2000000 "$found" > "$out"; else : > "$out"; fi
