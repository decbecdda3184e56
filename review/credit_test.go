package review

import "testing"

// A finding on content that moves on stays open as long as the text has its quote, at any
// place and with other blanks. A quote with placeholders or of removed code cannot be looked for.
func TestCreditedFindingIsOpen(t *testing.T) {
	t.Parallel()
	const source, at = "//depot/dev/a.c", "//depot/main/a.c"
	quoted := Finding{Path: source, Category: CategorySecurity, Quote: "if (x)\n\treturn 1;"}
	other := Finding{Path: "//depot/dev/b.c", Category: CategorySecurity, Quote: quoted.Quote, Places: []Place{quoted.Place()}}
	masked := Finding{Path: source, Category: CategorySecurity, Quote: "login([REDACTED:password:1fc3]);"}
	for name, tt := range map[string]struct {
		of     Finding
		text   string
		first  int
		isOpen bool
	}{
		"as it was":                   {quoted, "a\nif (x)\n\treturn 1;\n", 2, true},
		"moved and indented":          {quoted, "a\nb\n  if (x)\n\n    return 1;\n", 3, true},
		"fixed":                       {quoted, "a\nif (y)\n\treturn 1;\n", 0, false},
		"at another place of it":      {other, "if (x)\n\treturn 1;\n", 1, true},
		"a masked quote":              {masked, "login(\"hunter2\");\n", 0, true},
		"a masked quote of elsewhere": {Finding{Path: "//depot/dev/c.c", Quote: masked.Quote}, "x\n", 0, false},
		"about removed code":          {Finding{Path: source, Quote: "check(x);", Anchor: AnchorRemoved}, "x\n", 0, true},
		"about a file":                {Finding{Path: source, Title: "No test"}, "x\n", 0, true},
	} {
		credited := CreditedFinding{Origin: Origin{Changelist: 2, Version: 1, Fingerprint: tt.of.Fingerprint()}, Path: tt.of.Path, Source: source, Category: tt.of.Category, Verbatim: tt.of.IsVerbatim()}
		for _, p := range tt.of.Places {
			credited.Others = append(credited.Others, p.Fingerprint)
		}
		open := OpenFindings(tt.text, at, []CreditedFinding{credited, credited})
		if (len(open) == 1) != tt.isOpen || len(open) > 1 {
			t.Errorf("%s: %+v", name, open)
		}
		for _, f := range open {
			if f.Path != at || f.StartLine != tt.first || f.Title != "Reported before in change 2" {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}
