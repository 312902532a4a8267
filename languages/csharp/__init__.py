"""C#: tests of .NET projects with xUnit, NUnit and MSTest; packages from NuGet."""

from __future__ import annotations

from languages.base import Framework, Language, read_packaged_file
from languages.csharp.plan import FRAMEWORK, create_draft, find_test_files, render_plan
from languages.csharp.releases import DEFAULT, RELEASES
from languages.csharp.tests import CANARY, TEST_FILE
from languages.scripting.versions import select_next_version

CSHARP = Language(
    name="c#",
    title="C#",
    suffixes=(".cs",),
    test_patterns=(
        r"(^|/)[^/]*Tests?([._-][^/]*)?/.*\.(cs|csproj|json|resx|txt|xml)$",
        r"(^|/)([^/]+[._-])?tests?([._-][^/]*)?/.*\.(cs|csproj)$",
        r"(^|/)[^/]*[a-z0-9_]Tests?\.cs$",
    ),
    runner_patterns=(r"(^|/)[^/]*\.runsettings$", r"(^|/)([^/]+\.)?xunit\.runner\.json$", r"(^|/)testconfig\.json$"),
    config_patterns=(r"(^|/)Directory\.(Build|Packages)\.(props|targets)$", r"(^|/)global\.json$"),
    test_file_pattern=TEST_FILE,
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=(
        Framework(
            name=FRAMEWORK,
            shell=read_packaged_file("languages.csharp", "dotnet.sh.j2"),
            report="trx",
            canary=CANARY,
        ),
    ),
    fallbacks=(select_next_version,),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_files=find_test_files,
)
