package redaction

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/review"
)

const password = "Xk29dkQ0dks!"

// leakyChange holds the same secret in each of its texts.
func leakyChange() review.Change {
	return review.Change{
		Number:      4711,
		User:        "bob",
		Time:        time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Description: "the password is " + password + "\n",
		Gaps:        []review.Gap{review.GapSubscribers},
		Jobs:        []string{"job1: rotate " + password},
		Files: []review.File{
			{DepotPath: "//depot/" + password + "/a.go", Action: review.ActionEdit, Type: password, FromPath: "//depot/" + password, Diff: "@@ -1,2 +1,2 @@\n x\n-old(" + password + ")\n+f(\"" + password + "\")\n"},
			{DepotPath: "//depot/b.bin", Action: review.ActionAdd, Charset: "windows-1252", Skipped: review.SkipBinary},
		},
		Rules: []review.RuleFile{{Path: "//depot/" + password + ".md", Text: password}},
	}
}

// A change is one payload: a secret found in one text is masked in all (security 9.5.1).
func TestChangeIsOnePayload(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{})
	c, err := p.Change(leakyChange())
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := p.Seal(c)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte(password)) {
		t.Errorf("the secret is not masked: %s", sealed)
	}
	tag := p.tagger("changelist 4711")(password)
	if n := bytes.Count(sealed, []byte(":"+tag+"]")); n != 9 {
		t.Errorf("tag %s occurs %d times in %s: want 9, the same everywhere", tag, n, sealed)
	}
	if want := "@@ -1,2 +1,2 @@\n x\n-old("; !strings.HasPrefix(c.Files[0].Diff.String(), want) {
		t.Errorf("diff is %q: want prefix %q", c.Files[0].Diff, want)
	}
	if c.Files[1].Skipped != review.SkipBinary || len(c.Redactions) == 0 {
		t.Errorf("skipped %q, redactions %v", c.Files[1].Skipped, c.Redactions)
	}
}

// What is found in a text with placeholders is mapped to the text without them.
func TestRangesOfARenderedText(t *testing.T) {
	t.Parallel()
	pt := &part{raw: "a SECRET b SECRET c"}
	for _, at := range []int{2, 11} {
		pt.spans = append(pt.spans, span{start: at, end: at + len("SECRET"), Reason: judge.Reason{Class: "secret"}, tag: "0000"})
	}
	out := pt.rendered()
	inSecond := strings.LastIndex(out, "secret")
	for _, c := range []struct{ start, end, wantStart, wantEnd int }{
		{0, len(out), 0, len(pt.raw)},
		{strings.Index(out, " b"), strings.Index(out, " b") + 2, 8, 10},
		{0, inSecond, 0, 17},
		{inSecond, len(out), 17, len(pt.raw)},
	} {
		if got := pt.inRaw([]span{{start: c.start, end: c.end}})[0]; got.start != c.wantStart || got.end != c.wantEnd {
			t.Errorf("%q of %q is %d to %d of the raw text: want %d to %d", out[c.start:c.end], out, got.start, got.end, c.wantStart, c.wantEnd)
		}
	}
}

func TestTagsDependOnTheReviewAndTheKey(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{})
	other, err := New(Config{Key: secret.New(strings.Repeat("q", 32))})
	if err != nil {
		t.Fatal(err)
	}
	tags := map[string]bool{p.tagger("a")(password): true, p.tagger("b")(password): true, other.tagger("a")(password): true}
	if len(tags) != 3 {
		t.Errorf("tags are %v: want three different ones", tags)
	}
	if first, again := p.tagger("a")(password), newTestPipeline(t, Config{}).tagger("a")(password); first != again {
		t.Errorf("tags of the same secret are %q and %q: want the same", first, again)
	}
}

func TestUndecodableDiffIsLeftOutAndReported(t *testing.T) {
	t.Parallel()
	c := leakyChange()
	c.Files[0].Diff = "@@ -1 +1 @@\n+" + strings.Repeat("\x01\x02\x03", 50)
	out, err := newTestPipeline(t, Config{}).Change(c)
	if err != nil {
		t.Fatal(err)
	}
	if f := out.Files[0]; f.Diff.String() != "" || f.Skipped != review.SkipNotDecodable {
		t.Errorf("diff %q, skipped %q: want none and %q", f.Diff, f.Skipped, review.SkipNotDecodable)
	}
}

func TestSealRoundTrip(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{})
	raw := leakyChange()
	raw.Restricted, raw.Empty, raw.Files[0].Notes = true, review.EmptyStream, []review.Note{review.NoteLineEnds}
	c, err := p.Change(raw)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := p.Seal(c)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Unseal(sealed)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Restricted || got.Empty != review.EmptyStream || len(got.Files[0].Notes) != 1 {
		t.Errorf("unsealed %+v lost what p4 reported", got)
	}
	if !reflect.DeepEqual(got, c) {
		t.Errorf("unsealed %+v: want %+v", got, c)
	}
}

// A change that bypassed the pipeline is blocked (security 9.5.5).
func TestUnsealRejects(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{})
	c, err := p.Change(leakyChange())
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := p.Seal(c)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(leakyChange())
	if err != nil {
		t.Fatal(err)
	}
	other, err := New(Config{Key: testKey, Emails: true})
	if err != nil {
		t.Fatal(err)
	}
	ofOther, err := other.Seal(c)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-5] ^= 1
	head, body, _ := bytes.Cut(sealed, []byte("\n"))
	for name, data := range map[string][]byte{
		"empty":              nil,
		"raw JSON":           raw,
		"without a head":     body,
		"without a body":     head,
		"a changed byte":     changed,
		"cut short":          sealed[:len(sealed)-1],
		"longer":             append(bytes.Clone(sealed), ' '),
		"of another policy":  ofOther,
		"of another version": bytes.Replace(sealed, []byte(p.Version()), []byte("0"+p.Version()[1:]), 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := failure.RedactionBlocked
			if name == "of another policy" {
				want = failure.RedactionOutdated
			}
			if _, err := p.Unseal(data); failure.ClassOf(err) != want {
				t.Errorf("error is %v: want class %s, and outdated only if the seal is valid", err, failure.RedactionBlocked)
			} else if strings.Contains(err.Error(), password) {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}

func TestTextCannotBeEncodedAsJSON(t *testing.T) {
	t.Parallel()
	if data, err := json.Marshal(Change{}); err == nil {
		t.Errorf("a change was encoded as %s", data)
	}
}

func TestFindingsAreRedacted(t *testing.T) {
	t.Parallel()
	in := []review.Finding{{Path: "a.go", StartLine: 3, Title: "hard-coded password", Explanation: `password = "` + password + `" is in the clear`, Quote: "f(" + password + ")"}}
	out, err := newTestPipeline(t, Config{}).Findings(in)
	if err != nil {
		t.Fatal(err)
	}
	if f := out[0]; strings.Contains(f.Explanation+f.Quote, password) || f.Path != "a.go" || f.StartLine != 3 || f.Title != in[0].Title {
		t.Errorf("finding is %+v", f)
	}
}

// A request body with a secret is blocked before it is sent (security 9.5.5).
func TestCheck(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{MaxBytes: 1 << 20})
	c, err := p.Change(leakyChange())
	if err != nil {
		t.Fatal(err)
	}
	request := func(s string) []byte {
		body, err := json.Marshal(map[string]any{"messages": []map[string]string{{"role": "user", "content": s}}})
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	aws := join("AK", "IA", "6YPUJNNVRAD7FMJM")
	for name, body := range map[string][]byte{
		"redacted text": request(c.Description.String() + c.Files[0].Diff.String() + "never repeat a password or an API key; Authorization: Bearer <token>"),
		"a public key":  request(keyBlock("PUBLIC KEY", 3)),
		"a masked key":  request(redacted(t, p, keyBlock("PRIVATE KEY", 3))),
		// As in a prompt, with a number before every line.
		"a masked key numbered": request(numbered(redacted(t, p, keyBlock("PRIVATE KEY", 3)))),
		"a masked password":     request(redacted(t, p, "url = postgres://app:letmein_prod@db/x")),
	} {
		if err := p.Check(body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, body := range map[string][]byte{
		"a token":                  request("x " + aws),
		"a token after an escape":  request("x\n" + aws),
		"an escaped token":         []byte(`{"content":"\u0041KIA` + aws[4:] + `"}`),
		"a token as a field name":  []byte(`{"` + aws + `":1}`),
		"a private key":            request(keyBlock("PRIVATE KEY", 3)),
		"a URI with a password":    request("postgres://app:letmein_prod@db/x"),
		"not JSON":                 []byte("{"),
		"two values":               []byte("{}{}"),
		"empty":                    nil,
		"over the limit":           request(strings.Repeat("a", 1<<20)),
		"a raw change, not a text": request(`password: "` + aws + `"`),
	} {
		err := p.Check(body)
		if failure.ClassOf(err) != failure.RedactionBlocked {
			t.Errorf("%s: error is %v, want class %s", name, err, failure.RedactionBlocked)
		} else if strings.Contains(err.Error(), aws[4:]) {
			t.Errorf("%s: the error shows the secret: %v", name, err)
		}
	}
}

func TestInvalidConfigIsRejected(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"no key":              {},
		"short key":           {Key: secret.New("short")},
		"negative limit":      {Key: testKey, MaxBytes: -1},
		"empty host suffix":   {Key: testKey, HostSuffixes: []string{"."}},
		"unknown charset":     {Key: testKey, Rules: "token corp-token corp_{letters:20} x"},
		"class not a word":    {Key: testKey, Rules: "token Corp_Token corp_{alnum:20} x"},
		"length not a number": {Key: testKey, Rules: "token corp-token corp_{alnum:many} x"},
		"missing fields":      {Key: testKey, Rules: "token corp-token corp_"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(cfg)
			if failure.ClassOf(err) != failure.ConfigInvalid {
				t.Errorf("error is %v: want class %s", err, failure.ConfigInvalid)
			}
		})
	}
	if _, err := New(Config{Key: secret.New(strings.Repeat("k", minKeyBytes))}); err != nil {
		t.Errorf("a key of the smallest size: %v", err)
	}
}

func TestConfiguredRules(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{Rules: "# our own\ntoken corp-token corp_{alnum:20+} corp_9tMDf9jQ5vxV1UN1qKy88ySi\n"})
	if out := redacted(t, p, "x corp_"+alnum40); out != "x [REDACTED:corp-token:"+p.tagger("text")("corp_"+alnum40)+"]" {
		t.Errorf("got %q", out)
	}
	if plain := newTestPipeline(t, Config{}); plain.Version() == p.Version() {
		t.Error("another rule set has the same version")
	}
}

// A panic in a detector blocks the change, and its message is dropped (security 9.5.5).
func TestPanickingDetectorBlocks(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{})
	p.engine.words = nil
	_, err := p.String("password = " + password)
	checkErr := p.Check([]byte(`{}`))
	for _, err := range []error{err, checkErr} {
		var f *failure.Error
		if !errors.As(err, &f) || f.Class != failure.RedactionBlocked || strings.Contains(err.Error(), password) {
			t.Errorf("error is %v: want class %s and no content", err, failure.RedactionBlocked)
		}
	}
}

// Invalid input is blocked or redacted, never passed on without a check.
func TestBadInput(t *testing.T) {
	t.Parallel()
	p := newTestPipeline(t, Config{MaxBytes: 8 << 20})
	for name, text := range map[string]string{
		"binary":         strings.Repeat("\x00\x01\x02\x7fELF", 100) + password,
		"some NULs":      "password = " + password + "\x00\x00",
		"over the limit": strings.Repeat("a ", 5<<20),
	} {
		if out, err := p.String(text); failure.ClassOf(err) != failure.RedactionBlocked || out.String() != "" {
			t.Errorf("%s: error is %v, want class %s and no text", name, err, failure.RedactionBlocked)
		}
	}
	long := strings.Repeat("x=1;", 1<<20) + `password = "` + password + `"`
	if out := redacted(t, p, long); strings.Contains(out, password) || len(out) < 4<<20 {
		t.Error("a secret at the end of a line of megabytes is left, or the line was cut")
	}
	if out := redacted(t, p, "password = "+password+"\r\nx = \xff\r\n"); strings.Contains(out, password) || !strings.HasSuffix(out, "\r\nx = \ufffd\r\n") {
		t.Errorf("CRLF or invalid UTF-8 got lost: %q", out)
	}
}

func numbered(text string) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		fmt.Fprintf(&b, "%5d + %s\n", 118+i, line)
	}
	return b.String()
}
