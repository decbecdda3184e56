package cli

import (
	"flag"
	"io"
	"testing"
)

func TestExplainFlags(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"-every=soon":               `-every "soon": want a time with its unit, such as 30s, 5m or 24h`,
		"-every=30":                 `-every "30": want a time with its unit, such as 30s, 5m or 24h`,
		"-n=many":                   `-n "many": want a whole number`,
		"-n=99999999999999999999":   `-n "99999999999999999999": want a whole number`,
		"-share=half":               `-share "half": want a number`,
		"-dry=perhaps":              `-dry "perhaps": want true or false`,
		"-nothing":                  "flag provided but not defined: -nothing",
		"-every":                    "flag needs an argument: -every",
		`-n=" for flag -dry: a"b: `: `-n "\" for flag -dry: a\"b: ": want a whole number`,
	} {
		flags := flag.NewFlagSet("tool", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		flags.Duration("every", 0, "")
		flags.Int("n", 0, "")
		flags.Float64("share", 0, "")
		flags.Bool("dry", false, "")
		if got := ExplainFlags(flags, flags.Parse([]string{typed})); got == nil || got.Error() != want {
			t.Errorf("%s: %v, want %s", typed, got, want)
		}
	}
	if err := ExplainFlags(flag.NewFlagSet("tool", flag.ContinueOnError), nil); err != nil {
		t.Errorf("nothing wrong is %v", err)
	}
}
