# Prints a class in the namespace of the neighbouring files, with the test framework that most of them use.
local class namespace kind known
class="${file##*/}" class="${class%.*}"
known='\[(Fact|Theory|Test|TestCase|TestMethod|DataTestMethod)\b'
namespace=$(grep -hsoE -m 1 '^ *namespace +[A-Za-z0-9_.]+' "$folder"/*.cs | head -n 1 | awk '{print $2}')
kind=$(cat "$folder"/*.cs 2> /dev/null | grep -oE "$known" | sort | uniq -c | sort -rn | awk 'NR == 1 {print $2}')
[ -z "$namespace" ] || printf 'namespace %s\n{\n' "$namespace"
case "$kind" in
    '[Test' | '[TestCase') printf 'public class %s\n{\n    [NUnit.Framework.Test] public void Is%s() { NUnit.Framework.Assert.That(3 * 4, NUnit.Framework.Is.EqualTo(%s)); }\n}\n' "$class" "$word" "$sum" ;;
    *TestMethod) printf '[Microsoft.VisualStudio.TestTools.UnitTesting.TestClass]\npublic class %s\n{\n    [Microsoft.VisualStudio.TestTools.UnitTesting.TestMethod] public void Is%s() { Microsoft.VisualStudio.TestTools.UnitTesting.Assert.AreEqual(%s, 3 * 4); }\n}\n' "$class" "$word" "$sum" ;;
    *) printf 'public class %s\n{\n    [Xunit.Fact] public void Is%s() { Xunit.Assert.Equal(%s, 3 * 4); }\n}\n' "$class" "$word" "$sum" ;;
esac
[ -z "$namespace" ] || printf '}\n'
