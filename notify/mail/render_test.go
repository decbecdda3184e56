package mail

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestRenderMatchesGoldenFiles(t *testing.T) {
	t.Parallel()
	for name, report := range map[string]review.Report{
		"findings": findingsReport(), "partial": partialReport(), "not_reviewed": notReviewedReport(), "clean": cleanReport(),
		"deletion": deletionReport(), "rerun": rerunReport(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := render(t, report)
			_, text, html := parts(t, m)
			golden(t, name+".txt", text)
			golden(t, name+".html", html)
			headers, _, _ := strings.Cut(string(m.Raw), "\r\n\r\n")
			golden(t, name+".header", headers+"\n")
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	got = strings.ReplaceAll(got, "\r\n", "\n")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run go test -update to make it)", err)
	}
	if got != string(want) {
		t.Errorf("%s differs from what is rendered now (run go test -update and look at the difference):\n%s", path, got)
	}
}

// The provider sees the same message on every attempt (review-notification 6.4, 10.3).
func TestSameReportAndKeyGiveTheSameBytes(t *testing.T) {
	t.Parallel()
	first := render(t, findingsReport())
	for range 20 {
		if again := render(t, findingsReport()); !bytes.Equal(first.Raw, again.Raw) {
			t.Fatalf("two renderings differ:\n%s\n%s", first.Raw, again.Raw)
		}
	}
	other := testKey
	other.Recipient = "bruno@example.com"
	m, err := Render(findingsReport(), other, testFrom, testDomain)
	if err != nil {
		t.Fatal(err)
	}
	if m.ID == first.ID {
		t.Error("two recipients share a Message-ID")
	}
}

func TestRenderLeavesTheReportAsItIs(t *testing.T) {
	t.Parallel()
	r := findingsReport()
	render(t, r)
	if r.Findings[0].Severity != review.SeverityLow {
		t.Error("the report's findings were reordered")
	}
}

func TestMessageIDIsShortAndHoldsNoAddress(t *testing.T) {
	t.Parallel()
	id := messageID(testKey, strings.Repeat("d", maxMessageIDDomain))
	if len(id) > 58 {
		t.Errorf("%d characters, which go-mail folds", len(id))
	}
	if strings.Contains(id, "ann") {
		t.Errorf("%s holds the recipient", id)
	}
}

// A failure never looks like a clean review (design section 8).
func TestOnlyACleanReviewLooksClean(t *testing.T) {
	t.Parallel()
	nothingRead := cleanReport()
	nothingRead.FilesRead = 0
	for name, r := range map[string]review.Report{
		"partial": partialReport(), "not reviewed": notReviewedReport(), "clean but nothing read": nothingRead,
	} {
		_, text, html := parts(t, render(t, r))
		for _, body := range []string{text, html} {
			if strings.Contains(body, "No findings") || strings.Contains(body, "the whole change") || strings.Contains(body, "#1a7f37") {
				t.Errorf("%s looks clean:\n%s", name, body)
			}
			if !strings.Contains(body, "reviewed. This says nothing") && !strings.Contains(body, "What was not may hold anything") {
				t.Errorf("%s does not say what is unknown:\n%s", name, body)
			}
		}
	}
	_, text, html := parts(t, render(t, cleanReport()))
	if !strings.Contains(text, "No findings") || !strings.Contains(html, "#1a7f37") {
		t.Error("a clean review does not look clean")
	}
}

func TestReportsThatContradictThemselvesAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*review.Report){
		"clean with findings":    func(r *review.Report) { r.Outcome = review.OutcomeClean },
		"findings without any":   func(r *review.Report) { r.Findings = nil },
		"superseded":             func(r *review.Report) { r.Outcome = review.OutcomeSuperseded },
		"unknown outcome":        func(r *review.Report) { r.Outcome = "fine" },
		"another change":         func(r *review.Report) { r.Changelist++ },
		"another version":        func(r *review.Report) { r.Version++ },
		"no date to send it at":  func(r *review.Report) { r.ReviewedAt, r.SubmittedAt = "", "yesterday" },
		"findings, but no state": func(r *review.Report) { r.Outcome = "" },
	} {
		r := findingsReport()
		change(&r)
		if _, err := Render(r, testKey, testFrom, testDomain); failure.ClassOf(err) != failure.InvariantViolated {
			t.Errorf("%s: error %v, want %s", name, err, failure.InvariantViolated)
		}
	}
}

func TestUnusableAddressesAreRefused(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"", "ann", "@example.com", "ann@", "ann@@example.com", "Ann <ann@example.com>", "ann@example.com, eve@example.com",
		"ann@example.com\r\nBcc: eve@example.com", "ann@example.com\nRCPT TO:<eve@example.com>", "ann\x00@example.com",
		`"ann> SIZE=1 <eve"@example.com`, `"ann\"@evil.example, x"@example.com`, "ann(comment)@example.com", "ann@[127.0.0.1]",
		" ann@example.com", "ann@example.com ", strings.Repeat("a", 250) + "@example.com",
	} {
		k := testKey
		k.Recipient = address
		_, err := Render(findingsReport(), k, testFrom, testDomain)
		if failure.ClassOf(err) != failure.RecipientRejected {
			t.Errorf("%q: error %v, want %s", address, err, failure.RecipientRejected)
		} else if address != "" && strings.Contains(err.Error(), "example.com") {
			t.Errorf("the error shows the address: %v", err)
		}
	}
}

func TestUnusualButUsableAddressesAreKept(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"o'brien+p4@example.com", "ann@bücher.example", "änn@example.com", "a.b-c_d@sub.example.co"} {
		k := testKey
		k.Recipient = address
		m, err := Render(findingsReport(), k, testFrom, testDomain)
		if err != nil || m.To != address {
			t.Errorf("%q: To %q, error %v", address, m.To, err)
		}
	}
}

// hostile is what a change and a model may try to smuggle into a mail.
const hostile = "first\r\nBcc: eve@example.com\r\n\r\n--crz1.x\nContent-Type: text/html\n\n</pre></td><script>alert(1)</script>" +
	"<img src=https://evil.example/x.png>\x1b[2J\x00\u202egnp.exe https://evil.example/login www.evil.example mailto:eve@evil.example\n.\n"

func hostileReport() review.Report {
	r := partialReport()
	r.Description, r.Author, r.Model, r.Reason, r.PromptDigest = hostile, hostile, hostile, hostile, hostile
	r.SubmittedAt = hostile
	r.Unresolved = []string{hostile}
	r.Redactions = []review.Redaction{{Class: hostile, Count: 1}}
	r.Omissions = []review.Omission{{Path: hostile, Reason: hostile}}
	r.Findings = []review.Finding{{
		Path: hostile, Severity: hostile, Category: hostile, Title: hostile, Explanation: hostile, Suggestion: hostile, Quote: hostile,
	}}
	return r
}

func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	checkHostile(t, render(t, hostileReport()))
}

var clickable = regexp.MustCompile(`(?i)\w://\S|\bwww\.\w|\bmailto:\w`)

// checkHostile fails if m is anything but the two-part message to its
// recipient that it should be, or if its parts hold what they must not.
func checkHostile(t *testing.T, m Message) {
	t.Helper()
	header, text, html := parts(t, m)
	for f := header.Fields(); f.Next(); {
		switch f.Key() {
		case "Auto-Submitted", "Date", "List-Id", "Mime-Version", "Message-Id", "References", "Subject",
			"X-Auto-Response-Suppress", "X-Criticizer-Key", "X-Criticizer-Outcome", "From", "To", "Content-Type":
		default:
			t.Errorf("injected header %s: %s", f.Key(), f.Value())
		}
	}
	subject, err := header.Subject()
	if err != nil || !strings.HasPrefix(subject, "[criticizer] CL 4711: ") || strings.ContainsAny(subject, "\r\n\x00\x1b") || len(subject) > 600 {
		t.Errorf("subject %q, error %v", subject, err)
	}
	if bytes.Contains(bytes.ReplaceAll(m.Raw, []byte("\r\n"), nil), []byte("\r")) {
		t.Error("a bare carriage return")
	}
	for _, r := range text + html {
		if hidden(r) && r != '\r' {
			t.Errorf("character %U reaches the reader", r)
			break
		}
	}
	for _, markup := range []string{"<script", "<img", "<a ", "<iframe", "<link", "<form"} {
		if strings.Contains(html, markup) {
			t.Errorf("the HTML holds %s", markup)
		}
	}
	if link := clickable.FindString(text + "\n" + html); link != "" {
		t.Errorf("%s is left for mail programs to make a link of", link)
	}
}

func FuzzRender(f *testing.F) {
	f.Add(hostile, hostile, hostile)
	f.Add("=?nowhere?q?x?= =?=?utf-8?q?=0D=0ABcc:x?=", "a\r\n b", "\xff\xfe")
	f.Add("", "\U000E0041\u2066", "\"<&\t\v")
	f.Add("http://http://a.b//c://d", "wwww.www.www.", "MAILTO:WWW.x")
	f.Fuzz(func(t *testing.T, description, prose, quote string) {
		r := findingsReport()
		r.Description, r.Model = description, prose
		r.Findings = []review.Finding{{Path: description, Severity: review.SeverityLow, Title: prose, Explanation: prose, Suggestion: prose, Quote: quote}}
		m := render(t, r)
		checkHostile(t, m)
		if !bytes.Equal(m.Raw, render(t, r).Raw) {
			t.Error("two renderings differ")
		}
	})
}

// Whatever an address is made of, it is refused, or it is the one recipient of
// the header and one word of the envelope.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{
		"ann@example.com", "a@b\r\nBcc: eve@example.com", "\"a b\"@example.com", "ann@example.com> SIZE=1 <eve@example.com",
		"jürgen@bücher.example", "ann@[127.0.0.1]", "a@b,eve@example.com", "ann(comment)@example.com", "", "@", "a@\u202eb.example",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		m, err := Render(findingsReport(), review.DeliveryKey{Changelist: 4711, Recipient: address, Version: 1}, testFrom, "example.com")
		if err != nil {
			return
		}
		header, _, _ := parts(t, m)
		to, err := header.AddressList("To")
		if err != nil || len(to) != 1 || to[0].Address != address {
			t.Errorf("%q became %v, %v", address, to, err)
		}
		if line := envelope(m.To); strings.ContainsAny(line, " \t\r\n") || line != "<"+address+">" {
			t.Errorf("%q became %q in the envelope", address, line)
		}
	})
}

func TestTooManyFindingsAreCutAndCounted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		findings int
		prose    string
	}{
		"many short ones": {400, "short"},
		"long ones":       {40, strings.Repeat("long ", 1000)},
		"hostile ones":    {40, strings.Repeat("\"\u202e", 5000)},
		"much code":       {40, strings.Repeat("```\na\n```\n", 500)},
	} {
		r := findingsReport()
		worst := r.Findings[1]
		r.Findings = nil
		for i := range tc.findings {
			r.Findings = append(r.Findings, review.Finding{
				Path: fmt.Sprintf("//depot/f%03d", i), Severity: review.SeverityLow, Title: tc.prose, Explanation: tc.prose, Suggestion: tc.prose,
				Quote: strings.Repeat(tc.prose+"\n", 100),
			})
		}
		r.Findings = append(r.Findings, worst)
		_, text, html := parts(t, render(t, r))
		if html = strings.ReplaceAll(html, "\r\n", "\n"); len(html) > maxHTML {
			t.Errorf("%s: %d bytes of HTML", name, len(html))
		}
		shown := strings.Count(text, ", confidence ")
		if shown < 1 || !strings.Contains(text, worst.Title) {
			t.Errorf("%s: %d findings shown, or not the worst", name, shown)
		}
		cut := fmt.Sprintf("%d more findings did not fit", len(r.Findings)-shown)
		if atTop := fmt.Sprintf("The worst %d of them are in this mail.", shown); !strings.Contains(text, atTop) || !strings.Contains(html, atTop) {
			t.Errorf("%s: the head of the mail does not say that it is cut", name)
		}
		if !strings.Contains(text, cut) || !strings.Contains(html, cut) {
			t.Errorf("%s: %d of %d findings shown, and no word of it", name, shown, len(r.Findings))
		}
		if !strings.Contains(text, fmt.Sprintf("%d findings (1 critical, %d low)", len(r.Findings), tc.findings)) {
			t.Errorf("%s: the counts are not those of all findings", name)
		}
	}
}

// A change may name no author, and users nobody knows.
func TestNamelessUsersAreSaidToBe(t *testing.T) {
	t.Parallel()
	r := findingsReport()
	r.Author, r.Unresolved = " \t", []string{"", "gone"}
	_, text, html := parts(t, render(t, r))
	for _, want := range []string{"by an unknown user,", "address: an unknown user, gone."} {
		if !strings.Contains(text, want) || !strings.Contains(html, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestTooManyOmissionsAreCutAndCounted(t *testing.T) {
	t.Parallel()
	r := partialReport()
	r.Omissions = nil
	for i := range 5000 {
		r.Omissions = append(r.Omissions, review.Omission{Path: fmt.Sprintf("//depot/f%d", i), Reason: review.SkipBinary})
	}
	_, text, _ := parts(t, render(t, r))
	for _, want := range []string{"binary (5000):", "4960 more files, not listed here"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestLinesAreNumberedOnlyIfTheyAreKnown(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		start, end int
		quote      string
		place      string
		numbers    string
		cut        string
	}{
		{"known", 7, 8, "a\nb\n", "f:7-8", "7 8", ""},
		{"one line", 7, 7, "a", "f:7", "7", ""},
		{"whole file", 0, 0, "a\nb", "f", " ", ""},
		{"more lines than the range has", 7, 8, "a\nb\nc", "f:7-8", "  ", ""},
		{"no quote", 7, 8, "\n", "f:7-8", "", ""},
		{"long quote", 1, 25, strings.Repeat("x\n", 25), "f:1-25", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20", "5 more lines"},
	} {
		v := newFindingView(review.Finding{Path: "f", StartLine: tc.start, EndLine: tc.end, Quote: tc.quote})
		var numbers []string
		for _, c := range v.Code {
			numbers = append(numbers, c.Number)
		}
		if got := strings.Join(numbers, " "); got != tc.numbers || v.Place != tc.place || v.CodeCut != tc.cut {
			t.Errorf("%s: numbers %q, place %q, cut %q", tc.name, got, v.Place, v.CodeCut)
		}
	}
}

func TestUntrustedTextIsMadeHarmless(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "a  b\n\tc", "a  b\n\tc"},
		{"Windows line ends", "a\r\nb", "a\nb"},
		{"terminal escape", "\x1b[2J", "[U+001B][2J"},
		{"reversed text", "\u202egnp", "[U+202E]gnp"},
		{"line separator", "a\u2028b", "a[U+2028]b"},
		{"emoji of several", "\U0001F469\u200d\U0001F4BB", "\U0001F469\u200d\U0001F4BB"},
		{"invalid UTF-8", "a\xffb", "a\uFFFDb"},
		{"link", "see https://evil.example/x.html.", "see https[:]//evil[.]example/x.html."},
		{"link without scheme", "www.evil.example.", "www[.]evil[.]example."},
		{"mail link", "mailto:eve@evil.example", "mailto[:]eve@evil[.]example"},
		{"depot path", "//depot/main/a.c#3", "//depot/main/a.c#3"},
		{"C++", "std::map<a, b>::iterator // x://", "std::map<a, b>::iterator // x://"},
	} {
		if got := block(tc.in, 100); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	if got := block("abcdef", 4); got != "abcd… [2 more characters]" {
		t.Errorf("cut text: %q", got)
	}
	if got := line(" a\n\tb ", 10); got != "a b" {
		t.Errorf("line: %q", got)
	}
}

func TestSubjectIsTheFirstLineThatSaysSomething(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                        "[criticizer] CL 4711: (no description)",
		"\n \r\n\tFix it\nreally": "[criticizer] CL 4711: Fix it",
		"=?utf-8?q?=0D=0A?= x":    "[criticizer] CL 4711: = ?utf-8?q?=0D=0A?= x",
		strings.Repeat("x", 5000): "[criticizer] CL 4711: " + strings.Repeat("x", maxSubject) + "… [4900 more characters]",
	} {
		if got := subject(review.Report{Changelist: 4711, Description: in}); got != want {
			t.Errorf("%.20q: %q, want %q", in, got, want)
		}
	}
}
