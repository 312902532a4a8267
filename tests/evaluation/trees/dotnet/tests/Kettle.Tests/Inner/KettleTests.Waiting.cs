using Xunit;

namespace Rope.Tests;

public partial class KettleTests
{
    [Fact] public void Waits() => throw new System.InvalidOperationException("broken");
}
