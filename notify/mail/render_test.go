package mail

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	xhtml "golang.org/x/net/html"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
	"github.com/criticizer/criticizer/review/plain/plaintest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestRenderMatchesGoldenFiles(t *testing.T) {
	t.Parallel()
	for name, report := range map[string]review.Report{
		"findings": findingsReport(), "partial": partialReport(), "not_reviewed": notReviewedReport(), "clean": cleanReport(),
		"deletion": deletionReport(), "rerun": rerunReport(), "full": fullReport(), "stand_in": standInReport(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig
			if name == "full" {
				cfg = fullConfig
			}
			m := renderWith(t, cfg, report)
			_, text, html := parts(t, m)
			golden(t, name+".txt", text)
			golden(t, name+".html", html)
			headers, _, _ := strings.Cut(string(mime(t, m)), "\r\n\r\n")
			golden(t, name+".header", headers+"\n")
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	got = strings.ReplaceAll(got, "\r\n", "\n")
	if *update {
		testkit.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run go test -update to create it)", err)
	}
	if got != string(want) {
		t.Errorf("%s differs from the rendered mail (run go test -update and look at the difference):\n%s", path, got)
	}
}

// The provider gets the same message in every attempt (notification 6.4, 10.3).
// The report stays unchanged.
func TestSameReportAndKeyGiveTheSameBytes(t *testing.T) {
	t.Parallel()
	r := findingsReport()
	first := render(t, r)
	for range 20 {
		if again := render(t, r); !bytes.Equal(mime(t, first), mime(t, again)) {
			t.Fatalf("two renderings differ:\n%s\n%s", mime(t, first), mime(t, again))
		}
	}
	if r.Findings[0].Severity != review.SeverityLow {
		t.Error("the report's findings were reordered")
	}
	other := testKey
	other.Recipient = "bruno@example.com"
	m, err := Render(r, other, testKeys.Token(other), testConfig)
	testkit.NoError(t, err)
	if m.ID == first.ID || m.Key == first.Key {
		t.Error("two recipients share a Message-ID or a key")
	}
}

func TestMessageIDIsShortAndWithoutAddress(t *testing.T) {
	t.Parallel()
	id := messageID(testToken, strings.Repeat("d", maxMessageIDDomain))
	if len(id) > 58 {
		t.Errorf("%d characters, which go-mail folds", len(id))
	}
	if strings.Contains(id, "ann") {
		t.Errorf("%s contains the recipient", id)
	}
}

// A failed or partial review never looks clean.
func TestOnlyACleanReviewLooksClean(t *testing.T) {
	t.Parallel()
	clean := newDigest(cleanReport(), testConfig)
	if clean.Tone != toneGood {
		t.Errorf("a clean review has tone %s", clean.Tone)
	}
	pictures := cleanReport()
	pictures.Coverage = review.Coverage{review.NewFileCoverage("//depot/main/art/logo.png", "", review.SkipBinary), review.NewFileCoverage("//depot/main/go.sum", "", review.SkipLockFile)}
	if d := newDigest(pictures, testConfig); d.Tone != toneGood || d.Headline != "Nothing to review" || d.Aside != "Not read by design: binary (1), lock file (1)." {
		t.Errorf("a picture and a lock file: %s, %q, %q", d.Tone, d.Headline, d.Aside)
	}
	if d := newDigest(standInReport(), testConfig); d.Tone == toneGood || d.StandIn == "" {
		t.Errorf("a stand-in's report looks clean: %q", d.Headline)
	}
	remarksDropped := cleanReport()
	remarksDropped.Outcome, remarksDropped.Reason = review.OutcomePartial, "1 of the model's remarks could not be used"
	if got := newDigest(remarksDropped, testConfig).Coverage; got != "3 of 3 files reviewed in full." {
		t.Errorf("the review read every file and dropped a remark: %q", got)
	}
	for name, r := range map[string]review.Report{
		"partial": partialReport(), "partial, with all files read": remarksDropped, "not reviewed": notReviewedReport(),
	} {
		d := newDigest(r, testConfig)
		if d.Tone == toneGood || strings.Contains(d.Headline, clean.Headline) || d.Coverage == clean.Coverage {
			t.Errorf("%s looks clean: %q, %q", name, d.Headline, d.Coverage)
		}
	}
}

func TestInconsistentReportsAreRejected(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*review.Report){
		"clean with findings":      func(r *review.Report) { r.Outcome = review.OutcomeClean },
		"findings without any":     func(r *review.Report) { r.Findings = nil },
		"superseded":               func(r *review.Report) { r.Outcome = review.OutcomeSuperseded },
		"unknown outcome":          func(r *review.Report) { r.Outcome = "fine" },
		"findings without outcome": func(r *review.Report) { r.Outcome = "" },
		"another change":           func(r *review.Report) { r.Changelist++ },
		"another version":          func(r *review.Report) { r.Version++ },
		"no date":                  func(r *review.Report) { r.ReviewedAt, r.SubmittedAt = "", "yesterday" },
	} {
		r := findingsReport()
		change(&r)
		if _, err := Render(r, testKey, testToken, testConfig); failure.ClassOf(err) != failure.InvariantViolated {
			t.Errorf("%s: error %v, want %s", name, err, failure.InvariantViolated)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"", "ann", "@example.com", "ann@", "ann@@example.com", "Ann <ann@example.com>", "ann@example.com, eve@example.com",
		"ann@example.com\r\nBcc: eve@example.com", "ann@example.com\nRCPT TO:<eve@example.com>", "ann\x00@example.com",
		`"ann> SIZE=1 <eve"@example.com`, `"ann\"@evil.example, x"@example.com`, "ann(comment)@example.com", "ann@[127.0.0.1]",
		" ann@example.com", "ann@example.com ", strings.Repeat("a", 250) + "@example.com",
	} {
		k := testKey
		k.Recipient = address
		_, err := Render(findingsReport(), k, testToken, testConfig)
		if failure.ClassOf(err) != failure.RecipientRejected {
			t.Errorf("%q: error %v, want %s", address, err, failure.RecipientRejected)
		} else if address != "" && strings.Contains(err.Error(), "example.com") {
			t.Errorf("the error contains the address: %v", err)
		}
	}
	for _, address := range []string{"o'brien+p4@example.com", "ann@bücher.example", "änn@example.com", "a.b-c_d@sub.example.co"} {
		k := testKey
		k.Recipient = address
		m, err := Render(findingsReport(), k, testToken, testConfig)
		if err != nil || m.To != address {
			t.Errorf("%q: To %q, error %v", address, m.To, err)
		}
	}
}

// hostile is text that a change or a model may contain to attack a mail.
const hostile = "first\r\nBcc: eve@example.com\r\n\r\n--crz1.x\nContent-Type: text/html\n\n</pre></td><script>alert(1)</script>" +
	"<img src=https://evil.example/x.png>\x1b[2J\x00\u202egnp.exe https://evil.example/login www.evil.example mailto:eve@evil.example\n.\n"

// hostileReport has s wherever a change or a model writes.
func hostileReport(s string) review.Report {
	r := partialReport()
	r.Description, r.Author, r.Model, r.Reason, r.PromptDigest, r.SubmittedAt = s, s, s, s, s, s
	r.Unresolved, r.Outside = []string{s}, []string{s}
	r.Redactions = []review.Redaction{{Class: s, Count: 1}}
	r.Coverage = review.Coverage{{Path: s, Lines: []review.Lines{{State: review.LinesHidden, Why: review.SkipReason(s)}}}}
	r.Findings = []review.Finding{{
		Path: s, Severity: review.Severity(s), Category: review.Category(s), Title: s, Explanation: "x\n```\n" + s, Suggestion: s, Quote: s,
		Replacement: s + "\n" + s, ReplacementChecked: true, Places: []review.Place{{Path: s}},
	}}
	r.Progress = &review.Progress{}
	for range maxResolved + 2 {
		r.Progress.Resolved = append(r.Progress.Resolved, review.Finding{Path: s, Title: s})
	}
	return r
}

func TestPayloadsStayText(t *testing.T) {
	t.Parallel()
	for _, s := range append(append(plaintest.Payloads(), injections(t)...), hostile) {
		checkHostile(t, render(t, hostileReport(s)))
	}
}

// checkHostile fails unless m is a message of two parts to its recipient without
// markup, links or hidden characters from the report.
func checkHostile(t *testing.T, m Message) {
	t.Helper()
	header, text, html := parts(t, m)
	for f := header.Fields(); f.Next(); {
		switch f.Key() {
		case "Auto-Submitted", "Date", "List-Id", "Mime-Version", "Message-Id", "References", "Subject",
			"X-Auto-Response-Suppress", "X-Criticizer-Key", "X-Criticizer-Outcome", "X-Criticizer-Severity", "X-Criticizer-Reason", "From", "To", "Content-Type":
		default:
			t.Errorf("injected header %s: %s", f.Key(), f.Value())
		}
	}
	subject, err := header.Subject()
	if err != nil || !strings.HasPrefix(subject, "[criticizer] CL 4711: ") || strings.ContainsAny(subject, "\r\n\x00\x1b") || len(subject) > 600 {
		t.Errorf("subject %q, error %v", subject, err)
	}
	if bytes.Contains(bytes.ReplaceAll(mime(t, m), []byte("\r\n"), nil), []byte("\r")) {
		t.Error("a carriage return without a line feed")
	}
	for _, r := range text + html {
		if plain.Invisible(r) && !strings.ContainsRune("\r\n\t", r) {
			t.Errorf("hidden character %U in the mail", r)
			break
		}
	}
	plaintest.NoURLs(t, text)
	for _, node := range visibleText(t, html) {
		plaintest.NoLinks(t, node)
	}
}

// visibleText returns the text nodes of a page that a reader sees. It fails if the page has
// elements or attributes that the templates do not have.
func visibleText(t *testing.T, page string) (nodes []string) {
	t.Helper()
	allowed := strings.Fields("html head meta title style body div table tbody tr td span b a br pre")
	for tokens := xhtml.NewTokenizer(strings.NewReader(page)); ; {
		switch tokens.Next() {
		case xhtml.ErrorToken:
			return nodes
		case xhtml.TextToken:
			nodes = append(nodes, tokens.Token().Data)
		case xhtml.StartTagToken, xhtml.SelfClosingTagToken:
			token := tokens.Token()
			if token.Data == "body" {
				nodes = nil // those before are not shown
			}
			if !slices.Contains(allowed, token.Data) {
				t.Errorf("the HTML contains %s", token)
			}
			for _, a := range token.Attr {
				if a.Key == "href" && !strings.HasPrefix(a.Val, "#f") || a.Key == "src" || a.Key == "background" || strings.HasPrefix(a.Key, "on") || strings.Contains(a.Val, "url(") {
					t.Errorf("the HTML contains %s", token)
				}
			}
		}
	}
}

// Outlook for Windows ignores white-space and joins the lines of any other element than pre.
func TestLinesDoNotDependOnStyles(t *testing.T) {
	t.Parallel()
	r := fullReport()
	r.Description = "Add:\n\n  - an  item\n  - another"
	r.Findings[1].Quote, r.Findings[1].ReplacementChecked = "\tif x {\n\n\t\ty()\n\t}", false
	html := render(t, r).HTML
	if strings.Contains(html, "white-space") {
		t.Error("the HTML uses white-space")
	}
	for _, want := range []string{"Add:<br>\n<br>\n&nbsp;&nbsp;- an&nbsp; item<br>\n&nbsp;&nbsp;- another<", ">if x {\n\n\ty()\n}</pre>"} {
		if !strings.Contains(html, want) {
			t.Errorf("the HTML lacks %q:\n%s", want, html)
		}
	}
}

// Filters and lists of mails see the result in the subject and in the header.
func TestSubjectAndHeaderHaveTheResult(t *testing.T) {
	t.Parallel()
	shelf := findingsReport()
	shelf.Shelved, shelf.To = true, review.RoleOwner
	partial := findingsReport()
	partial.Outcome = review.OutcomePartial
	for name, tc := range map[string]struct {
		report                    review.Report
		subject, severity, reason string
	}{
		"clean":            {cleanReport(), "[criticizer] CL 4711: clean - Keep", "", "author"},
		"stand-in":         {standInReport(), "[criticizer] CL 4711: no model - Keep", "", "author"},
		"findings":         {shelf, "[criticizer] shelved CL 4711: 1 critical, 1 medium, 1 low - Keep", "critical", "owner"},
		"partial":          {partialReport(), "[criticizer] CL 4711: partly reviewed - Keep", "", "author"},
		"partial findings": {partial, "[criticizer] CL 4711: 1 critical, 1 medium, 1 low, partly reviewed - Keep", "critical", "author"},
		"not reviewed":     {notReviewedReport(), "[criticizer] CL 4711: not reviewed - Keep", "", "author"},
	} {
		m := render(t, tc.report)
		if !strings.HasPrefix(m.Subject, tc.subject) || m.Header["X-Criticizer-Severity"] != tc.severity || m.Header["X-Criticizer-Reason"] != tc.reason {
			t.Errorf("%s: subject %q, header %v", name, m.Subject, m.Header)
		}
	}
}

// A reader copies the code of the change and of the fix from either part.
func TestCodeIsTheCode(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		`self.data = yaml.safe_load(f.read())`, `t, _ := time.Parse(time.RFC3339, errors.New(s).Error())`,
		`@app.route("/x") # root@db.example:/srv/a, 127.0.0.1`, `import "github.com/a/b" // evil.com/x`,
		`path = "\\\\srv\\share" + 'data:,x' if a.b.c: pass`, `strings.HasPrefix(s, "http://") && x[i] == '<'`,
	} {
		r := findingsReport()
		r.Findings = []review.Finding{{
			Path: "//depot/a.c", StartLine: 1, EndLine: 1, Severity: review.SeverityLow, Title: "about " + code, Explanation: "Read:\n\n    " + code,
			Quote: code, Replacement: code + " # fixed", ReplacementChecked: true,
		}}
		_, text, html := parts(t, render(t, r))
		text, shown := strings.ReplaceAll(text, "\r\n", "\n"), strings.Join(visibleText(t, html), "")
		for _, want := range []string{"about " + code, "\n    - " + code + "\n", "\n    + " + code + " # fixed\n", " 1 > " + code + "\n"} {
			if unwrapped := strings.Join(strings.Fields(text), " "); !strings.Contains(text, want) && !strings.Contains(unwrapped, want) {
				t.Errorf("the text lacks %q:\n%s", want, text)
			}
		}
		if n := strings.Count(shown, code); n != 5 {
			t.Errorf("the HTML has %q %d times, want 5:\n%s", code, n, shown)
		}
	}
}

// injections returns instructions to the model, as it repeats them if it follows them.
func injections(t *testing.T) (texts []string) {
	t.Helper()
	data, err := os.ReadFile("../../llm/testdata/injections.json")
	testkit.NoError(t, err)
	var attacks []struct{ Text string }
	if err := json.Unmarshal(data, &attacks); err != nil || len(attacks) == 0 {
		t.Fatalf("%d attacks, %v", len(attacks), err)
	}
	for _, a := range attacks {
		texts = append(texts, a.Text)
	}
	return texts
}

func FuzzRender(f *testing.F) {
	for _, s := range plaintest.Payloads() {
		f.Add(s, s, s)
	}
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
		if !bytes.Equal(mime(t, m), mime(t, render(t, r))) {
			t.Error("two renderings differ")
		}
	})
}

// Every address is rejected, or is the only recipient in the header and one word
// in the envelope.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{
		"ann@example.com", "a@b\r\nBcc: eve@example.com", "\"a b\"@example.com", "ann@example.com> SIZE=1 <eve@example.com",
		"jürgen@bücher.example", "ann@[127.0.0.1]", "a@b,eve@example.com", "ann(comment)@example.com", "", "@", "a@\u202eb.example",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		m, err := Render(findingsReport(), review.DeliveryKey{Changelist: 4711, Recipient: address, Version: 1}, testToken, testConfig)
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
				Quote: strings.Repeat(tc.prose+"\n", maxQuoteLines+1), Replacement: strings.Repeat("+"+tc.prose+"\n", maxQuoteLines+1), ReplacementChecked: true,
			})
		}
		r.Findings = append(r.Findings, worst)
		text, html, err := Bodies(r, testConfig)
		if err != nil || len(html) > maxHTML {
			t.Errorf("%s: %d bytes of HTML, error %v", name, len(html), err)
		}
		shown := strings.Count(text, ", confidence ")
		if shown < 1 || shown > maxFindings || !strings.Contains(text, worst.Title) {
			t.Errorf("%s: %d findings shown, or not the worst", name, shown)
		}
		d := newDigest(r, testConfig).first(shown)
		if d.Counts != fmt.Sprintf("1 critical, %d low", tc.findings) {
			t.Errorf("%s: the counts are %q, want those of all findings", name, d.Counts)
		}
		for field, value := range map[string]string{"Withheld": d.Withheld, "Headline": d.Headline} {
			if value == "" || !strings.Contains(text, value) || !strings.Contains(html, value) {
				t.Errorf("%s: the mail does not show %s (%q)", name, field, value)
			}
		}
	}
}

func TestTooManyUnreadFilesAreCutAndCounted(t *testing.T) {
	t.Parallel()
	r := partialReport()
	r.Coverage = nil
	for i := range 5000 {
		r.Coverage = append(r.Coverage, review.NewFileCoverage(fmt.Sprintf("//depot/f%d", i), "", review.SkipTooLarge))
	}
	list := newDigest(r, testConfig).Unread
	if len(list) != 1 || list[0].Count != 5000 || len(list[0].Paths) != maxUnread+1 || list[0].Paths[maxUnread] != "4960 more files" {
		t.Errorf("%+v", list)
	}
}

func TestLinesAreNumberedOnlyIfTheyAreKnown(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		start, end int
		quote      string
		position   string
		numbers    string
		cut        string
	}{
		{"known", 7, 8, "a\nb\n", "f:7-8", "7 8", ""},
		{"one line", 7, 7, "a", "f:7", "7", ""},
		{"whole file", 0, 0, "a\nb", "f", " ", ""},
		{"more lines than the range has", 7, 8, "a\nb\nc", "f:7-8", "  ", ""},
		{"no quote", 7, 8, "\n", "f:7-8", "", ""},
		{"long quote", 1, 25, strings.Repeat("x\n", 25), "f:1-25", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20", "[5 more lines]"},
	} {
		v := newFindingView(review.Finding{Path: "f", StartLine: tc.start, EndLine: tc.end, Quote: tc.quote})
		var numbers []string
		for _, c := range v.Code {
			numbers = append(numbers, c.Number)
		}
		cut := ""
		if last := len(v.Code) - 1; last >= 0 && strings.HasPrefix(v.Code[last].Text, "[") {
			cut, numbers = v.Code[last].Text, numbers[:last]
		}
		if got := strings.Join(numbers, " "); got != tc.numbers || v.Position != tc.position || cut != tc.cut {
			t.Errorf("%s: numbers %q, position %q, cut %q", tc.name, got, v.Position, cut)
		}
	}
}

// The notice that a review waits has another token than the digest, so that no look-up of one
// finds the other, and does not claim that anything was read.
func TestNoticeIsNotTheDigest(t *testing.T) {
	t.Parallel()
	key := testKey
	key.Kind = review.NoticeNotReviewed
	r := review.Report{Changelist: key.Changelist, Version: key.Version, Author: "ann", Outcome: review.OutcomeNotReviewed,
		ReviewedAt: "2026-11-20T10:16:30Z", Reason: "the review stopped in stage llm (QUOTA_EXHAUSTED)", To: review.RoleAuthor}
	m, err := Render(r, key, testKeys.Token(key), Config{From: testFrom, MessageIDDomain: testDomain})
	testkit.NoError(t, err)
	if m.Key == testToken || strings.Contains(m.Text, "in full") || !strings.Contains(m.Text, "Not reviewed\n") || !strings.Contains(m.Text, "stage llm (QUOTA_EXHAUSTED)") {
		t.Errorf("key %s, text\n%s", m.Key, m.Text)
	}
}

// The URL of a page contains the reader's address: a click sends nothing else (RFC 8058 3.1).
func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	for unsubscribe, want := range map[string][2]string{
		"":                   {"", ""},
		"r+list@example.com": {"<mailto:r+list@example.com?subject=unsubscribe>", ""},
		"https://example.com/unsubscribe?who={recipient}": {
			"<https://example.com/unsubscribe?who=ann%40example.com>", "List-Unsubscribe=One-Click",
		},
	} {
		cfg := testConfig
		cfg.Unsubscribe = unsubscribe
		var p config.Problems
		cfg.Check(&p)
		h := renderWith(t, cfg, findingsReport()).Header
		if got := [2]string{h["List-Unsubscribe"], h["List-Unsubscribe-Post"]}; got != want || strings.Contains(fmt.Sprint(p.Err()), "unsubscribe") {
			t.Errorf("%q: List-Unsubscribe and -Post are %q; problems %v", unsubscribe, got, p.Err())
		}
	}
}

func TestReplyTo(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{"": "", "ann@example.com": "ann@example.com", "ann@example.com\r\nBcc: x@example.com": "", "ann": "", "änn@example.com": ""} {
		r := findingsReport()
		r.ReplyTo = to
		if got := render(t, r).Header["Reply-To"]; got != want {
			t.Errorf("%q: Reply-To is %q", to, got)
		}
	}
}
