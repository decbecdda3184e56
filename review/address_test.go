package review

import (
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in, want string // want is empty if refused
	}{
		"as people write it":       {"Jo.Doe+cr@Corp.Example", "jo.doe+cr@corp.example"},
		"blanks around":            {"  jo@corp.test\t", "jo@corp.test"},
		"no dot in the domain":     {"root@localhost", "root@localhost"},
		"another alphabet":         {"jörg@bücher.example", "jörg@bücher.example"},
		"empty":                    {"", ""},
		"no domain":                {"jo", ""},
		"a name before it":         {"Jo <jo@corp.test>", ""},
		"two":                      {"jo@corp.test,sam@corp.test", ""},
		"a header in it":           {"jo@corp.test\r\nBcc: eve@evil.test", ""},
		"a line break in it":       {"jo\n@corp.test", ""},
		"a quoted local part":      {`"jo doe"@corp.test`, ""},
		"a quoted header":          {"\"jo\r\nBcc: x\"@corp.test", ""},
		"a comment":                {"jo(hi)@corp.test", ""},
		"an address literal":       {"jo@[127.0.0.1]", ""},
		"a right-to-left override": {"jo\u202e@corp.test", ""},
		"a zero-width space":       {"jo\u200b@corp.test", ""},
		"bytes that are not UTF-8": {"jo\xff@corp.test", ""},
		"longer than any there is": {strings.Repeat("a", 250) + "@b.de", ""},
		"a source route":           {"@relay.test:jo@corp.test", ""},
		"what p4 users may have":   {"jo@", ""},
		"what a shell would run":   {"$(id)@corp.test", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseAddress(tt.in)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("ParseAddress(%q) = %q, %v, want %q", tt.in, got, err, tt.want)
			}
		})
	}
}
