package mail

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"

	messagemail "github.com/emersion/go-message/mail"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/notify/evidence"
	"github.com/criticizer/criticizer/review"
)

const (
	testFrom   = "Criticizer <criticizer@example.com>"
	testDomain = "example.com"
)

var testConfig = Config{From: testFrom, MessageIDDomain: testDomain}

// fullConfig has everything that a mail can offer.
var fullConfig = Config{
	From: testFrom, MessageIDDomain: testDomain, Keys: testKeys, FeedbackRelay: "mx.example.com", Unsubscribe: "reviews@example.com",
	HelpURL: "https://wiki.example.com/criticizer",
}

// testKeys is one key that has signed for years.
var testKeys = keysOf("2020-01-01T00:00:00Z", 'k')

// keysOf returns keys with one line, of 32 bytes b.
func keysOf(from string, b byte) *evidence.Keys {
	keys, err := evidence.New(secret.New(from + " " + lineOf(b)))
	if err != nil {
		panic(err)
	}
	return keys
}

func lineOf(b byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) }

func keysText(t *testing.T, text string) *evidence.Keys {
	t.Helper()
	keys, err := evidence.New(secret.New(text))
	testkit.NoError(t, err)
	return keys
}

var testToken = testKeys.Token(testKey)

var testKey = review.DeliveryKey{Changelist: 4711, Recipient: "ann@example.com", Version: 1}

func findingsReport() review.Report {
	return review.Report{
		Changelist: 4711, Version: 1, Author: "ann",
		Description: "Keep the session cache warm across reloads\n\nThe loader dropped it on every configuration change.\nJob: job000123",
		Outcome:     review.OutcomeFindings,
		Coverage:    covered(3),
		Findings: []review.Finding{
			{
				Path: "//depot/main/server/loader.go", StartLine: 88, EndLine: 88,
				Severity: review.SeverityLow, Category: review.CategoryErrorHandling, Confidence: 0.6,
				Title: "The error of Close is dropped", Explanation: "A full disk shows only here.",
				Quote: "\tdefer f.Close()", Before: "\tif err != nil {\n\t\treturn err\n\t}", After: "\treturn parse(f)\n}",
			},
			{
				Path: "//depot/main/server/session_cache.go", StartLine: 120, EndLine: 123,
				Severity: review.SeverityCritical, Category: review.CategoryConcurrency, Confidence: 0.92,
				Title:       "The map is read after the lock was released",
				Explanation: "get returns the entry after Unlock, while reload may replace the map at the same time.\n\nTwo requests during a reload are enough to crash the server with \"concurrent map read and map write\".",
				Suggestion:  "Read the entry before unlocking:\n\n  entry := c.entries[key]\n  c.mu.Unlock()\n  return entry",
				Quote:       "func (c *cache) get(key string) *entry {\n\tc.mu.Lock()\n\tc.mu.Unlock()\n\treturn c.entries[key] // after an operation on a map that another goroutine may be replacing\n",
			},
			{
				Path:     "//depot/main/server/session_cache_test.go",
				Severity: review.SeverityMedium, Category: review.CategoryTesting, Confidence: 0.7,
				Title: "No test reloads while requests run", Explanation: "The defect above passes all tests of this change.",
			},
		},
		Redactions:  []review.Redaction{{Class: "aws-access-key", Count: 1}, {Class: "password", Count: 2}},
		Unresolved:  []string{"buildbot"},
		Record:      review.Record{Model: "gpt-test-1", Usage: review.Usage{Calls: 2, PromptTokens: 5120, CompletionTokens: 640}, PromptDigest: "3f9a2c"},
		SubmittedAt: "2026-11-20T10:15:00Z", ReviewedAt: "2026-11-20T10:16:30Z",
		To: review.RoleAuthor,
	}
}

// covered returns the coverage of n files that were read in full.
func covered(n int) review.Coverage {
	return slices.Repeat(review.Coverage{{Path: "//depot/main/server/loader.go", Lines: []review.Lines{{First: 1, Last: 90, State: review.LinesShown}}}}, n)
}

func partialReport() review.Report {
	r := findingsReport()
	r.Outcome, r.Reason, r.Findings = review.OutcomePartial, "the model's answer for one part could not be used", nil
	r.Coverage = append(covered(2),
		review.NewFileCoverage("//depot/main/art/logo.psd", "", review.SkipBinary),
		review.NewFileCoverage("//depot/main/data/big.json", "", review.SkipTooLarge),
		review.NewFileCoverage("//depot/main/art/icon.png", "", review.SkipBinary),
		review.FileCoverage{Path: "//depot/main/server/tables.go", Lines: []review.Lines{
			{First: 1, Last: 40, State: review.LinesShown}, {First: 41, Last: 60, State: review.LinesHidden, Why: review.SkipOverBudget},
			{First: 61, Last: 61, State: review.LinesMasked}, {First: 62, Last: 62, State: review.LinesHidden, Why: review.SkipMaskedCode},
		}})
	return r
}

func notReviewedReport() review.Report {
	r := findingsReport()
	r.Outcome, r.Reason, r.Findings, r.Redactions = review.OutcomeNotReviewed, "too large (1)", nil, nil
	r.Coverage, r.Usage = review.Coverage{review.NewFileCoverage("//depot/main/data/big.json", "", review.SkipTooLarge)}, review.Usage{}
	return r
}

func cleanReport() review.Report {
	r := findingsReport()
	r.Outcome, r.Findings, r.Redactions, r.Unresolved = review.OutcomeClean, nil, nil, nil
	return r
}

// standInReport is the report of a review without a model.
func standInReport() review.Report {
	r := cleanReport()
	r.Model, r.StandIn = "llmsim-1", true
	return r
}

func deletionReport() review.Report {
	r := cleanReport()
	r.Coverage = append(r.Coverage, review.NewFileCoverage("//depot/main/server/old.go", "", review.SkipDeleted))
	return r
}

// rerunReport is findingsReport after a version 3 that had its first two findings
// and two others.
func rerunReport() review.Report {
	r := findingsReport()
	earlier := review.Report{Version: 3, Findings: append(slices.Clone(r.Findings[:2]),
		review.Finding{Path: "//depot/main/server/loader.go", Title: "The file is opened twice", Quote: "os.Open(name)"},
		review.Finding{Path: "//depot/main/server/big.go", Title: "Not looked at again", Quote: "x"})}
	r.Version, r.Earlier = 4, 3
	r.Outcome, r.Coverage = review.OutcomePartial, append(r.Coverage, review.NewFileCoverage("//depot/main/server/big.go", "", review.SkipOverBudget))
	r.Progress = review.Compare(earlier, r)
	return r
}

// fullReport has everything that a mail can show beside rerunReport: provenance,
// feedback links, other places, code and anchors.
func fullReport() review.Report {
	r := findingsReport()
	r.Dropped = map[review.DropReason]int{review.DropMinor: 2, review.DropUnknownPath: 1}
	r.FixesDropped = map[review.DropReason]int{review.DropFixSyntax: 1}
	r.Links = review.Links{Change: "https://swarm.example.com/changes/{changelist}", File: "p4://perforce:1666//{path}@{changelist}#{line}"}
	fixed := &r.Findings[1]
	fixed.Quote = strings.TrimSuffix(fixed.Quote, "\n")
	fixed.Replacement, fixed.ReplacementChecked = strings.Replace(fixed.Quote, "\tc.mu.Unlock()", "\tdefer c.mu.Unlock()", 1), true
	r.Check = &review.Check{Checked: 7, Removed: 2, Lowered: 1, Failed: 3, Why: "UPSTREAM_UNAVAILABLE"}
	r.Switches = []review.Switch{{From: "m-1", To: "m-2", Why: "CONTENT_POLICY", Calls: 1}}
	r.Gaps = []review.Gap{review.GapSubscribers, review.GapJobs}
	r.Usage = review.Usage{Calls: 2, PromptTokens: 5120, CompletionTokens: 640, CachedTokens: 100, Kept: 2, Estimated: true}
	r.Cost = &review.Cost{Amount: 0.01234, Currency: "EUR"}
	r.Findings[0].Disputed = []review.Feedback{{Opinion: review.OpinionWrong, Who: "bruno", Note: "the caller closes it"}}
	r.Findings[0].FeedbackToken, r.Findings[0].Anchor = "abcdefg234567", review.AnchorContext
	r.Findings[2].Anchor = review.AnchorFile
	for range maxPlaces + 2 {
		r.Findings[0].Places = append(r.Findings[0].Places, review.Place{Path: "//depot/other.go", StartLine: 7, EndLine: 7})
	}
	return r
}

func render(t *testing.T, r review.Report) Message {
	t.Helper()
	return renderWith(t, testConfig, r)
}

func renderWith(t *testing.T, cfg Config, r review.Report) Message {
	t.Helper()
	key := testKey
	key.Changelist, key.Version = r.Changelist, r.Version
	m, err := Render(r, key, testKeys.Token(key), cfg)
	testkit.NoError(t, err)
	return m
}

// mime returns the bytes of m.
func mime(t *testing.T, m Message) []byte {
	t.Helper()
	raw, err := m.MIME()
	testkit.NoError(t, err)
	return raw
}

// parts parses m like a mail program.
func parts(t *testing.T, m Message) (header messagemail.Header, text, html string) {
	t.Helper()
	r, err := messagemail.CreateReader(bytes.NewReader(mime(t, m)))
	if err != nil {
		t.Fatalf("parse message: %v", err)
	}
	var bodies []string
	for {
		p, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("parse part: %v", err)
		}
		b, err := io.ReadAll(p.Body)
		if err != nil {
			t.Fatalf("read part: %v", err)
		}
		bodies = append(bodies, string(b))
	}
	if len(bodies) != 2 {
		t.Fatalf("message has %d parts, want text and HTML", len(bodies))
	}
	return r.Header, bodies[0], bodies[1]
}

// Not even a test contains a credential (security 9.3).
var testPassword = rand.Text()

func plainConfig(addr *net.TCPAddr) Config {
	return Config{From: testFrom, Server: ServerURL("smtp+insecure://" + addr.String()), Keys: testKeys}
}

// as returns the URL with another scheme.
func (u ServerURL) as(scheme string) ServerURL {
	_, rest, _ := strings.Cut(string(u), "://")
	return ServerURL(scheme + "://" + rest)
}

// of returns the URL with this account.
func (u ServerURL) of(user string) ServerURL {
	return ServerURL(strings.Replace(string(u), "://", "://"+user+"@", 1))
}

func newSMTP(t *testing.T, cfg Config) *Server {
	t.Helper()
	return NewServer(slog.New(slog.DiscardHandler), cfg)
}

// checkError fails if err has another class or upstream code, or if it contains
// an address or a password.
func checkError(t *testing.T, err error, class failure.Class, upstream string) {
	t.Helper()
	if got := failure.ClassOf(err); err == nil || got != class {
		t.Errorf("class %s, want %s: %v", got, class, err)
		return
	}
	if e, ok := errors.AsType[*failure.Error](err); !ok || e.Upstream != upstream {
		t.Errorf("upstream code %q, want %q: %v", e.Upstream, upstream, err)
	}
	for chain := err; chain != nil; chain = errors.Unwrap(chain) {
		for _, private := range []string{"@", testPassword} {
			if strings.Contains(chain.Error(), private) {
				t.Errorf("the error contains %q: %v", private, chain)
			}
		}
	}
}

// evidenceWith returns the default configuration of evidence, with changes.
func evidenceWith(change func(*EvidenceConfig)) EvidenceConfig {
	c := config.Default[EvidenceConfig]()
	change(&c)
	return c
}
