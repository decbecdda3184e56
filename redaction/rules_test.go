package redaction

import "testing"

func TestInvalidDataFilesAreRejected(t *testing.T) {
	t.Parallel()
	for name, parse := range map[string]func() error{
		"a command without flags":        func() error { _, err := parseCommands("flag mysql -p\n"); return err },
		"a command of an unknown form":   func() error { _, err := parseCommands("any mysql : -p\n"); return err },
		"a form without a command":       func() error { _, err := parseCommands("flag : -p\n"); return err },
		"a function without an argument": func() error { _, err := parseFunctions("plain login(\n"); return err },
		"a function of an unknown form":  func() error { _, err := parseFunctions("1 any login(\n"); return err },
		"an argument of no function":     func() error { _, err := parseFunctions("1 plain\n"); return err },
	} {
		if err := parse(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if got, err := parseCommands("# a comment\n\nlast net use :\n"); err != nil || len(got) != 1 || got[0].word != "net use" || got[0].how != "last" {
		t.Errorf("got %+v, %v", got, err)
	}
}
