# Programs that Debian has without the metadata of cabal: a package of each one starts Debian's program.
home=$1
shift
mkdir -p "$home/tools"
for tool; do
    program=$(command -v "$tool") || continue
    folder=$(mktemp -d)
    mkdir "$folder/$tool-99"
    printf '%s\n' 'cabal-version: 2.0' "name: $tool" 'version: 99' 'build-type: Simple' "executable $tool" \
        '  main-is: Main.hs' '  build-depends: base, process' '  default-language: Haskell2010' \
        > "$folder/$tool-99/$tool.cabal"
    printf '%s\n' 'import System.Environment (getArgs)' 'import System.Exit (exitWith)' \
        'import System.Process (rawSystem)' 'main :: IO ()' \
        "main = getArgs >>= rawSystem \"$program\" >>= exitWith" > "$folder/$tool-99/Main.hs"
    tar -C "$folder" -czf "$home/tools/$tool-99.tar.gz" "$tool-99"
    rm -r "$folder"
done
