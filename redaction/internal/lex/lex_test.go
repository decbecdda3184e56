package lex

import (
	"strings"
	"testing"
)

// lexed returns the tokens of a text without blanks: a literal as L(text), a comment as C(text).
func lexed(text string, l *Language) string {
	var out []string
	for _, t := range Lex(text, 0, len(text), l) {
		switch inner := text[t.Inner():t.InnerEnd()]; t.Kind {
		case Literal:
			out = append(out, "L("+inner+")")
		case Comment:
			out = append(out, "C("+inner+")")
		case Name, Mark:
			out = append(out, text[t.Start:t.End])
		}
	}
	return strings.Join(out, " ")
}

func TestLanguages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, text, want string }{
		{"a.c", `x = "a\"b"; /* c" */ // d'`, `x = L(a\"b) ; C( c" ) C( d')`},
		{"a.cpp", `R"(a"b)" 'c'`, `L(a"b) L(c)`},
		{"a.go", "x := `a\n\"`", "x := L(a\n\")"},
		{"a.py", "\"\"\" the password \"\"\"\nf(r'a\\'b') # x", "L( the password ) f ( L(a\\'b) ) C( x)"},
		{"a.rb", "x = <<~EOT\n  a\"\nEOT\ny", "x = < < ~ EOT L(  a\"\n) EOT y"},
		{"a.rb", "x = <<~EOT\nEOT\ny\nEOT\n", "x = < < ~ EOT EOT y EOT"},
		{"a.tf", "x = <<eot\n  a\"\n  eot\ny", "x = < < eot L(  a\"\n) eot y"},
		{"a.rb", "x = <<'sql'\n  a\"\nsql\ny", "x = < < L(sql) L(  a\"\n) sql y"},
		{"a.rb", "x <<sql\n a b\nsql\ny", "x < < sql a b sql y"},
		{"a.rs", `let c = 'x'; r#"a"b"#`, `let c = ' x ' ; L(a"b)`},
		{"a.sql", "x = 'it''s' -- c\n", "x = L(it''s) C( c)"},
		{"a.lua", "x = [[a\n]] --[[b]] -- c", "x = L(a\n) C(b) C( c)"},
		{"a.yaml", `a: "b" # 'c`, `a : L(b) C( 'c)`},
		{"a.ini", "; a'b\nx=c;d", "C( a'b) x = c ; d"},
		{"a.ps1", "<# a #> $x = 'b'", "C( a ) $ x = L(b)"},
		{"a.vb", `x = "a""b" ' c`, `x = L(a""b) C( c)`},
		{"a.html", `<a b="c"><!-- d -->e's`, `< a b = L(c) > C( d ) e ' s`},
		{"Makefile", "a = b # c\n", "a = b C( c)"},
		{"noname", `the user's "pass word" isn't`, `the user ' s L(pass word) isn ' t`},
		{"noname", `{\"a\": \"b\"}`, `{ L(a) : L(b) }`},
		{"noname", `a = 'b`, `a = ' b`},
		{"noname", "http://x/y # c\n#d", "http : / / x / y C( c) # d"},
	} {
		if got := lexed(c.text, Of(c.file)); got != c.want {
			t.Errorf("%s: %q is %q, want %q", c.file, c.text, got, c.want)
		}
	}
	names := map[string]bool{}
	for _, l := range languages {
		names[l.Name] = true
	}
	if len(names) < 40 {
		t.Errorf("%d languages are known: want at least 40", len(names))
	}
}

// FuzzLex checks that the tokens of any text are the text, in every language.
func FuzzLex(f *testing.F) {
	for _, seed := range []string{"", "a = \"b", "'''", "<<EOT\nx\nEOT\n", "<<OT\nOT ", "\\\"a\\\"", "\x01\n", "`a\n`", "/* x", "r#\"a\"#", "é = 'ü'", "a\r\n'b'"} {
		f.Add("a.py", seed)
		f.Add("x", seed)
	}
	f.Fuzz(func(t *testing.T, file, text string) {
		at := int32(0)
		for _, tok := range Lex(text, 0, len(text), Of(file)) {
			if tok.Start != at || tok.End <= tok.Start || tok.Inner() < int(tok.Start) || tok.InnerEnd() > int(tok.End) || tok.Inner() > tok.InnerEnd() {
				t.Fatalf("token %+v of %q follows offset %d", tok, text, at)
			}
			at = tok.End
		}
		if int(at) != len(text) {
			t.Fatalf("the tokens of %q end at %d", text, at)
		}
	})
}
