package redaction

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction/internal/judge"
)

// FuzzRedact checks what is true for every text: no panic, the same number of lines,
// and a second redaction changes nothing.
func FuzzRedact(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "password = \"Xk29dkQ0dks!\"", "-----BEGIN RSA PRIVATE KEY-----\n" + keyBody + "\n",
		"@@ -1 +1 @@\n-" + keyBody + "\n+" + keyBody + "\n", "postgres://a:b1234567@h/x", "[REDACTED:password:0000]x[REDACTED:", "password = \"[REDACTED:" + hex40[:32] + ":0000]\"", "p\u0430ss\u200bword\u00a0= %3D&#100;\"a\" + \"b\"",
		"key_key_key = key", "p\x00w\x00d\x00=\x00", "Authorization: Basic c3ZjOjJONUtEdWsyV0hCbA==", "<password>\nx1y2z3w4\n</password>", "secret = []byte{1,2,3,4,5,6,7,8,9,10,11}",
		"user = 'a'\npassword = 'b1c2d3'", "--- a\n+++ b\n@@ -1 +1 @@\n\\ No newline", "\xff\xfe\xc0", "curl -u a:b1c2d3 https://x",
		// Found by fuzzing: a key too short for its head, and the replacement of invalid UTF-8 changed what was found.
		"MIIBAAKC", "AuthoriZAtion:BABAB\xff00ABA0BYCXa12Wsy",
	} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	for line := range strings.Lines(formsFile) {
		if strings.HasPrefix(line, "+ ") {
			f.Add(strings.NewReplacer("«", "", "»", "", "⏎", "\n").Replace(line[2:]), false)
		}
	}
	p := newTestPipeline(f, Config{Emails: true, InternalIPs: true, HostSuffixes: []string{"corp"}, MaxBytes: 1 << 20})
	f.Fuzz(func(t *testing.T, text string, diff bool) {
		out, marks, _, err := p.Explain(text, "", diff)
		if err != nil {
			if failure.ClassOf(err) != failure.RedactionBlocked {
				t.Fatalf("error is %v: want class %s", err, failure.RedactionBlocked)
			}
			if strings.Contains(err.Error(), "panicked") || strings.Contains(err.Error(), "still finding") {
				t.Fatal(err)
			}
			return
		}
		if a, b := strings.Count(text, "\n"), strings.Count(out.String(), "\n"); a != b {
			t.Fatalf("lines were %d, are %d: %q became %q", a, b, text, out)
		}
		text = strings.ToValidUTF8(text, "\uFFFD")
		at := 0
		for _, m := range marks {
			if m.Start < at || m.End <= m.Start || m.End > len(text) || strings.Contains(text[m.Start:m.End], "\n") {
				t.Fatalf("mark %+v of %q is out of order or crosses a line", m, text)
			}
			at = m.End
		}
		again, _, _, err := p.Explain(out.String(), "", diff)
		if err != nil && !readable(out.String()) {
			return // too many of the remaining bytes are control characters
		}
		if err != nil || again != out {
			t.Fatalf("redacted again, %q became %q (%v)", out, again, err)
		}
		if len(marks) > 0 && strings.Contains(text, "\n") && diff && !strings.HasPrefix(text, "[") && text[0] != out.String()[0] && marks[0].Start == 0 && strings.ContainsRune("+-", rune(text[0])) {
			t.Fatalf("the prefix of %q is gone: %q", text, out)
		}
	})
}

// FuzzPlaceholder checks that no detector matches a placeholder, alone or after the
// name of a secret.
func FuzzPlaceholder(f *testing.F) {
	f.Add("password", "3f2a", "password = ")
	f.Add("token", "0000", "Bearer ")
	f.Add("private-key", "ffff", "key: ")
	p := newTestPipeline(f, Config{})
	f.Fuzz(func(t *testing.T, class, tag, before string) {
		if !p.engine.names.Classes[class] || len(tag) != judge.TagLen || strings.Trim(tag, "0123456789abcdef") != "" || len(before) > 12 || !strings.HasSuffix(before, " ") {
			t.Skip()
		}
		placeholder := judge.PlaceholderHead + class + ":" + tag + "]"
		out, err := p.String(before + placeholder)
		if err == nil && !strings.HasSuffix(out.String(), placeholder) {
			t.Fatalf("%q became %q", before+placeholder, out)
		}
	})
}
