# Prints a class in the package of the neighbouring files, with the test framework that most of them use.
local suffix="${file##*.}" class neighbour package kind known
class="${file##*/}" class="${class%.*}"
known='org\.junit\.jupiter|org\.testng|org\.junit\.(Test|Assert|\*)|junit\.framework|kotlin\.test'
neighbour=$(grep -lsE '^ *package ' "$folder"/*."$suffix" | head -n 1)
package=$([ -z "$neighbour" ] || grep -m 1 -E '^ *package ' "$neighbour" | tr -d ';\r')
kind=$(cat "$folder"/*."$suffix" 2> /dev/null | grep -oE "$known" | sort | uniq -c | sort -rn | awk 'NR == 1 {print $2}')
case "$kind" in
    org.junit.jupiter) kind=org.junit.jupiter.api.Test ;;
    org.testng) kind=org.testng.annotations.Test ;;
    kotlin.test) kind=kotlin.test.Test ;;
    org.junit.*) kind=org.junit.Test ;;
    '') kind=org.junit.jupiter.api.Test ;;
esac
case "$suffix:$kind" in
    kt:*)
        [ -z "$package" ] || printf '%s\n' "$package"
        printf 'class %s {\n    @%s\n    fun t%s() {\n        check(3 * 4 == %s)\n    }\n}\n' "$class" "$kind" "$word" "$sum"
        ;;
    *:junit.framework)
        [ -z "$package" ] || printf '%s;\n' "$package"
        printf 'public class %s extends junit.framework.TestCase {\n' "$class"
        printf '    public void test%s() {\n        assertEquals(%s, 3 * 4);\n    }\n}\n' "$word" "$sum"
        ;;
    *)
        [ -z "$package" ] || printf '%s;\n' "$package"
        printf 'public class %s {\n    @%s\n    public void t%s() {\n' "$class" "$kind" "$word"
        printf '        if (3 * 4 != %s) {\n            throw new AssertionError("3 * 4");\n        }\n    }\n}\n' "$sum"
        ;;
esac
