package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
)

const testMessage = "From: <robot@example.com>\r\nTo: <ann@example.com>\r\nSubject: [criticizer] CL 4711: Keep it warm\r\n" +
	"Message-ID: <one@example.com>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n" +
	"--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nplain words\r\n" +
	"--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>marked up</p><script>alert(1)</script>\r\n--b--\r\n"

// start serves an inbox on dir until the test ends or stop is called.
func start(t *testing.T, dir string) (b *Inbox, stop func()) {
	t.Helper()
	b, err := Open(slog.New(slog.DiscardHandler), Config{Dir: dir, SMTPAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", MaxMessageBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- b.Serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(stop)
	return b, stop
}

func send(t *testing.T, b *Inbox, to, message string) error {
	t.Helper()
	c, err := smtp.Dial(b.SMTPAddr().String())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return c.SendMail("robot@example.com", []string{to}, strings.NewReader(message))
}

func mustSend(t *testing.T, b *Inbox, to, message string) {
	t.Helper()
	if err := send(t, b, to, message); err != nil {
		t.Fatalf("send: %v", err)
	}
}

func get(t *testing.T, u string) (status int, header http.Header, body string) {
	t.Helper()
	resp, err := http.Get(u)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(data)
}

type lookupAnswer struct {
	Copies   int     `json:"copies"`
	Settled  bool    `json:"settled"`
	Messages []Entry `json:"messages"`
}

func lookup(t *testing.T, b *Inbox, id string) lookupAnswer {
	t.Helper()
	_, _, body := get(t, b.URL()+"/api/lookup?"+url.Values{"message_id": {id}}.Encode())
	var a lookupAnswer
	decode(t, body, &a)
	return a
}

func decode(t *testing.T, body string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), v); err != nil {
		t.Fatalf("decode %q: %v", body, err)
	}
}

func TestMailSurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, stop := start(t, dir)
	mustSend(t, b, "ann@example.com", testMessage)
	before := lookup(t, b, "one@example.com")
	stop()

	b, _ = start(t, dir)
	after := lookup(t, b, "one@example.com")
	if after.Copies != 1 || !after.Settled {
		t.Fatalf("after the restart: %+v", after)
	}
	if got, want := fmt.Sprintf("%+v", after.Messages), fmt.Sprintf("%+v", before.Messages); got != want {
		t.Errorf("entry changed over the restart:\n%s\n%s", got, want)
	}
	e := after.Messages[0]
	if e.From != "robot@example.com" || fmt.Sprint(e.To) != "[ann@example.com]" || e.Subject != "[criticizer] CL 4711: Keep it warm" {
		t.Errorf("entry: %+v", e)
	}
	if time.Since(e.ReceivedAt) > time.Minute {
		t.Errorf("received at %s", e.ReceivedAt)
	}
}

func TestAnUnfinishedFileIsNotMail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	leftover := filepath.Join(dir, temporary+"123")
	if err := os.WriteFile(leftover, []byte(testMessage), 0o600); err != nil {
		t.Fatal(err)
	}
	b, _ := start(t, dir)
	if a := lookup(t, b, "one@example.com"); a.Copies != 0 {
		t.Errorf("a file that was never confirmed is listed: %+v", a)
	}
	if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the leftover is still there: %v", err)
	}
}

func TestTwoCopiesAreKeptAndCounted(t *testing.T) {
	t.Parallel()
	b, _ := start(t, t.TempDir())
	mustSend(t, b, "ann@example.com", testMessage)
	mustSend(t, b, "ann@example.com", testMessage)
	a := lookup(t, b, "<one@example.com>")
	if a.Copies != 2 || len(a.Messages) != 2 || a.Messages[0].ID == a.Messages[1].ID {
		t.Fatalf("look-up: %+v", a)
	}
	if _, _, body := get(t, b.URL()+"/messages/"+a.Messages[0].ID); !strings.Contains(body, "accepted 2 times") {
		t.Error("the page does not say that there are two copies")
	}
	if a := lookup(t, b, "ne@example.com"); a.Copies != 0 {
		t.Errorf("a part of a Message-ID matches: %+v", a)
	}
}

func TestConcurrentSendersLoseNothing(t *testing.T) {
	t.Parallel()
	b, _ := start(t, t.TempDir())
	const senders = 20
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			id := fmt.Sprintf("<%d@example.com>", i)
			if err := send(t, b, "ann@example.com", strings.Replace(testMessage, "<one@example.com>", id, 1)); err != nil {
				t.Errorf("send %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for i := range senders {
		if a := lookup(t, b, fmt.Sprintf("%d@example.com", i)); a.Copies != 1 {
			t.Errorf("message %d: %+v", i, a)
		}
	}
}

func TestListIsPagedNewestFirst(t *testing.T) {
	t.Parallel()
	b, _ := start(t, t.TempDir())
	for i := range 5 {
		mustSend(t, b, fmt.Sprintf("user%d@example.com", i), strings.Replace(testMessage, "CL 4711", fmt.Sprintf("CL %d", 100+i), 1))
	}
	subjects := func(query string) (int, string) {
		_, _, body := get(t, b.URL()+"/api/messages?"+query)
		var p page
		decode(t, body, &p)
		var numbers []string
		for _, e := range p.Messages {
			numbers = append(numbers, strings.Fields(strings.TrimSuffix(e.Subject, ":"))[2])
		}
		return p.Total, strings.Join(numbers, " ")
	}
	for _, tc := range []struct {
		query, want string
		total       int
	}{
		{"", "104: 103: 102: 101: 100:", 5},
		{"limit=2", "104: 103:", 5},
		{"limit=2&offset=4", "100:", 5},
		{"offset=99", "", 5},
		{"offset=-1&limit=-1", "104:", 5},
		{"q=cl+103", "103:", 1},
		{"q=USER2@", "102:", 1},
		{"q=nobody", "", 0},
	} {
		if total, got := subjects(tc.query); got != tc.want || total != tc.total {
			t.Errorf("%q lists %q of %d, want %q of %d", tc.query, got, total, tc.want, tc.total)
		}
	}
}

func TestMessageIsShownInAllForms(t *testing.T) {
	t.Parallel()
	b, _ := start(t, t.TempDir())
	mustSend(t, b, "ann@example.com", testMessage)
	id := lookup(t, b, "one@example.com").Messages[0].ID
	for path, want := range map[string]string{
		"/":                                 "CL 4711",
		"/messages/" + id:                   "<iframe sandbox src=",
		"/messages/" + id + "?view=text":    "plain words",
		"/messages/" + id + "?view=source":  "&lt;script&gt;alert(1)",
		"/messages/" + id + "/html":         "<p>marked up</p>",
		"/api/messages/" + id:               `"text":"plain words"`,
		"/api/messages/" + id + "/raw":      "Return-Path: <robot@example.com>\r\nEnvelope-To: <ann@example.com>\r\n" + testMessage,
		"/web/style.css":                    "color-scheme",
		"/healthz":                          "ok",
		"/?q=nobody":                        "No message has",
		"/api/messages/../../etc/passwd":    "not found",
		"/api/messages/..%2f..%2fetc%2fpwd": "no such message",
	} {
		if _, _, body := get(t, b.URL()+path); !strings.Contains(body, want) {
			t.Errorf("%s does not hold %q:\n%s", path, want, body)
		}
	}
}

// A message's own HTML runs nothing and loads nothing, wherever it is opened.
func TestHostileMessageStaysInItsSandbox(t *testing.T) {
	t.Parallel()
	b, _ := start(t, t.TempDir())
	hostile := strings.NewReplacer("CL 4711", "<img src=x onerror=alert(1)>", "plain words", "</pre><script>alert(2)</script>").Replace(testMessage)
	mustSend(t, b, `"<b>"@example.com`, hostile)
	id := lookup(t, b, "one@example.com").Messages[0].ID
	for _, path := range []string{"/", "/messages/" + id + "?view=text", "/messages/" + id + "?view=source"} {
		_, header, body := get(t, b.URL()+path)
		for _, markup := range []string{"<img", "<script", "<b>"} {
			if strings.Contains(body, markup) {
				t.Errorf("%s holds the message's own %s", path, markup)
			}
		}
		if !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s has no strict policy: %v", path, header)
		}
	}
	_, header, _ := get(t, b.URL()+"/messages/"+id+"/html")
	if p := header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "sandbox; default-src 'none'") {
		t.Errorf("the message's HTML is served with policy %q", p)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	b, _ := start(t, t.TempDir())
	request := func(method, path string, change func(*http.Request)) int {
		req, err := http.NewRequest(method, b.URL()+path, strings.NewReader(`{"stage":"rcpt","action":"drop"}`))
		if err != nil {
			t.Fatal(err)
		}
		change(req)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := request("GET", "/", func(r *http.Request) { r.Host = "evil.example" }); got != http.StatusMisdirectedRequest {
		t.Errorf("a foreign name that leads here gets %d", got)
	}
	if got := request("POST", "/inbox/fault", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }); got != http.StatusForbidden {
		t.Errorf("a page of another site gets %d", got)
	}
	if got := request("POST", "/inbox/fault", func(*http.Request) {}); got != http.StatusOK {
		t.Errorf("a local program gets %d", got)
	}
}

func TestTooLargeMessageIsRefused(t *testing.T) {
	t.Parallel()
	b, _ := start(t, t.TempDir())
	err := send(t, b, "ann@example.com", testMessage+strings.Repeat("x\r\n", 40<<10))
	var reply *smtp.SMTPError
	if !errors.As(err, &reply) || reply.Code != 552 {
		t.Errorf("error %v, want 552", err)
	}
	if n := b.store.count(); n != 0 {
		t.Errorf("%d messages kept", n)
	}
}

func TestUnreadableMessagesAreKeptAndListed(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{
		"no header":         "\x00\x01 nonsense without a colon\r\n\r\n",
		"empty":             "",
		"broken multipart":  strings.Replace(testMessage, "--b--", "--b", 1),
		"unknown charset":   strings.Replace(testMessage, "charset=utf-8", "charset=nowhere", 1),
		"invalid UTF-8":     strings.Replace(testMessage, "plain words", "\xff\xfe", 1),
		"bad encoded word":  strings.Replace(testMessage, "CL 4711", "=?nowhere?q?x?=", 1),
		"part without head": strings.Replace(testMessage, "Content-Type: text/plain; charset=utf-8\r\n", "", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			b, stop := start(t, dir)
			mustSend(t, b, "ann@example.com", message)
			stop()
			b, _ = start(t, dir)
			entries := b.search("")
			if len(entries) != 1 {
				t.Fatalf("%d messages after the restart", len(entries))
			}
			for _, path := range []string{"/messages/" + entries[0].ID, "/messages/" + entries[0].ID + "?view=source", "/api/messages/" + entries[0].ID} {
				if status, _, body := get(t, b.URL()+path); status != http.StatusOK {
					t.Errorf("%s gives %d: %s", path, status, body)
				}
			}
		})
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	b, _ := start(t, t.TempDir())
	for _, tc := range []struct {
		name, want string
		cfg        Config
	}{
		{"no directory", "Dir is empty", Config{}},
		{"negative limit", "MaxMessageBytes -1", Config{Dir: t.TempDir(), MaxMessageBytes: -1}},
		{"mail address taken", "take SMTPAddr", Config{Dir: t.TempDir(), SMTPAddr: b.SMTPAddr().String()}},
		{"web address taken", "take HTTPAddr", Config{Dir: t.TempDir(), SMTPAddr: "127.0.0.1:0", HTTPAddr: strings.TrimPrefix(b.URL(), "http://")}},
	} {
		if _, err := Open(slog.New(slog.DiscardHandler), tc.cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", tc.name, err, tc.want)
		}
	}
}

func code(err error) int {
	if reply, ok := errors.AsType[*smtp.SMTPError](err); ok {
		return reply.Code
	}
	if protocol, ok := errors.AsType[*textproto.Error](err); ok {
		return protocol.Code
	}
	return 0
}
