package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/criticizer/criticizer/internal/testkit"
)

const testMessage = "From: <robot@example.com>\r\nTo: <ann@example.com>\r\nSubject: [criticizer] CL 4711: Keep it warm\r\n" +
	"Message-ID: <one@example.com>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n" +
	"--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nplain words\r\n" +
	"--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>marked up</p><script>alert(1)</script>\r\n--b--\r\n"

// start serves an inbox on dir until the test ends or stop is called.
func start(t *testing.T, dir string) (b *Inbox, stop func()) {
	t.Helper()
	b, err := Open(slog.New(slog.DiscardHandler), Config{Dir: dir, SMTPAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0"})
	testkit.NoError(t, err)
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

func get(t *testing.T, u string) (header http.Header, body string) {
	t.Helper()
	resp, err := http.Get(u)
	testkit.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s, %v", u, resp.Status, err)
	}
	return resp.Header, string(data)
}

type answer struct {
	Copies   int     `json:"copies"`
	Settled  bool    `json:"settled"`
	Messages []Entry `json:"messages"`
}

func getJSON(t *testing.T, b *Inbox, path string) (a answer) {
	t.Helper()
	_, body := get(t, b.URL()+path)
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatalf("decode %q: %v", body, err)
	}
	return a
}

func lookup(t *testing.T, b *Inbox, id string) answer {
	t.Helper()
	return getJSON(t, b, "/api/lookup?"+url.Values{"message_id": {id}}.Encode())
}

func TestMailSurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	leftover := filepath.Join(dir, temporary+"123") // of a message that was never confirmed
	testkit.NoError(t, os.WriteFile(leftover, []byte(strings.ReplaceAll(testMessage, "one@", "two@")), 0o600))
	b, stop := start(t, dir)
	for range 2 {
		mustSend(t, b, "ann@example.com", testMessage)
	}
	before := lookup(t, b, "<one@example.com>")
	stop()

	b, _ = start(t, dir)
	after := lookup(t, b, "one@example.com")
	if fmt.Sprint(after) != fmt.Sprint(before) || after.Copies != 2 || !after.Settled || after.Messages[0].ID == after.Messages[1].ID {
		t.Fatalf("before the restart %+v, after it %+v", before, after)
	}
	e := after.Messages[0]
	if e.From != "robot@example.com" || fmt.Sprint(e.To) != "[ann@example.com]" || e.Subject != "[criticizer] CL 4711: Keep it warm" || time.Since(e.ReceivedAt) > time.Minute {
		t.Errorf("entry: %+v", e)
	}
	for what, id := range map[string]string{"never confirmed": "two@example.com", "with a longer id": "ne@example.com"} {
		if a := lookup(t, b, id); a.Copies != 0 {
			t.Errorf("a message %s is found: %+v", what, a)
		}
	}
	if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary file still exists: %v", err)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	b, _ := start(t, t.TempDir())
	for i := range 3 {
		mustSend(t, b, fmt.Sprintf("user%d@example.com", i), strings.Replace(testMessage, "CL 4711", fmt.Sprintf("CL %d", 100+i), 1))
	}
	for q, want := range map[string]string{"": "102 101 100", "cl 101": "101", "USER2@": "102", "nobody": ""} {
		var found []string
		for _, e := range getJSON(t, b, "/api/messages?q="+url.QueryEscape(q)).Messages {
			found = append(found, strings.TrimSuffix(strings.Fields(e.Subject)[2], ":"))
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%q finds %q, want %q", q, got, want)
		}
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	b, _ := start(t, t.TempDir())
	mustSend(t, b, "ann@example.com", testMessage)
	id := lookup(t, b, "one@example.com").Messages[0].ID
	if _, page := get(t, b.URL()+"/messages/"+id); !strings.Contains(page, "<pre>plain words</pre>") {
		t.Errorf("page %q", page)
	}
	if _, raw := get(t, b.URL()+"/api/messages/"+id+"/raw"); raw != "Return-Path: <robot@example.com>\r\nEnvelope-To: <ann@example.com>\r\n"+testMessage {
		t.Errorf("source %q", raw)
	}
	for _, path := range []string{"nothing", "..%2f..%2fetc%2fpasswd"} {
		resp, err := http.Get(b.URL() + "/messages/" + path)
		testkit.NoError(t, err)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s gives %s", path, resp.Status)
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
	for _, path := range []string{"/", "/messages/" + id, "/?q=%3Cscript%3E"} {
		header, body := get(t, b.URL()+path)
		for _, markup := range []string{"<img", "<script", "<b>"} {
			if strings.Contains(body, markup) {
				t.Errorf("%s contains the message's own %s", path, markup)
			}
		}
		if !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s has no strict policy: %v", path, header)
		}
	}
	header, body := get(t, b.URL()+"/messages/"+id+"/html")
	if p := header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "sandbox; default-src 'none'") || !strings.Contains(body, "marked up") {
		t.Errorf("the message's HTML %q is served with policy %q", body, p)
	}
}

func TestOtherHostNamesAreRejected(t *testing.T) {
	t.Parallel()
	b, _ := start(t, t.TempDir())
	req, err := http.NewRequest(http.MethodGet, b.URL(), nil)
	testkit.NoError(t, err)
	req.Host = "evil.example"
	resp, err := http.DefaultClient.Do(req)
	testkit.NoError(t, err)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("another host name gets %s", resp.Status)
	}
}

func TestUnreadableMessagesAreKept(t *testing.T) {
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
		dir := t.TempDir()
		b, stop := start(t, dir)
		mustSend(t, b, "ann@example.com", message)
		stop()
		b, _ = start(t, dir)
		entries := b.search("")
		if len(entries) != 1 {
			t.Fatalf("%s: %d messages after the restart", name, len(entries))
		}
		get(t, b.URL()+"/messages/"+entries[0].ID)
	}
}

// While a transaction hangs, its message must not be called absent.
func TestLookupIsUnsettledWhileATransactionIsOpen(t *testing.T) {
	t.Parallel()
	b, _ := start(t, t.TempDir())
	reached, release := make(chan struct{}), make(chan struct{})
	b.Inject(Fault{At: AtDot, Wait: func() { close(reached); <-release }})
	sent := make(chan error, 1)
	go func() { sent <- send(t, b, "ann@example.com", testMessage) }()
	<-reached
	if a := lookup(t, b, "one@example.com"); a.Copies != 0 || a.Settled {
		t.Errorf("while it hangs: %+v", a)
	}
	close(release)
	if a := lookup(t, b, "one@example.com"); a.Copies != 1 || !a.Settled {
		t.Errorf("the look-up did not wait for the open transaction: %+v", a)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}
