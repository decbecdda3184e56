package inbox

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-message"
)

//go:embed web
var files embed.FS

var pages = template.Must(template.ParseFS(files, "web/*.html"))

// The content security policies. A page may load nothing but its style sheet. A
// message's HTML is untrusted: its sandbox runs, loads, sends and opens nothing.
const (
	pagePolicy    = "default-src 'none'; style-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	messagePolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)

func (b *Inbox) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		q := r.FormValue("q")
		b.show(w, "list.html", map[string]any{"Query": q, "Messages": b.search(q), "SMTP": b.SMTPAddr().String()})
	})
	mux.HandleFunc("GET /messages/{id}", b.withMessage(func(w http.ResponseWriter, e Entry, raw []byte) {
		b.show(w, "message.html", map[string]any{"Entry": e, "Contents": openMessage(raw)})
	}))
	mux.HandleFunc("GET /messages/{id}/html", b.withMessage(func(w http.ResponseWriter, _ Entry, raw []byte) {
		w.Header().Set("Content-Security-Policy", messagePolicy)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, openMessage(raw).HTML)
	}))
	mux.Handle("GET /web/style.css", http.FileServerFS(files))
	mux.HandleFunc("GET /api/messages", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, map[string]any{"messages": b.search(r.FormValue("q"))})
	})
	mux.HandleFunc("GET /api/messages/{id}/raw", b.withMessage(func(w http.ResponseWriter, _ Entry, raw []byte) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write(raw)
	}))
	mux.HandleFunc("GET /api/lookup", b.lookup)
	return b.guard(mux)
}

// guard sets the headers of every answer. If the inbox listens on loopback, it
// rejects other host names: a hostile page could otherwise read the mail through
// a name of its own that resolves to this machine.
func (b *Inbox) guard(next http.Handler) http.Handler {
	loopback := b.http.Addr().(*net.TCPAddr).IP.IsLoopback()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if loopback && !isLoopback(r.Host) {
			http.Error(w, "this inbox answers to localhost only", http.StatusMisdirectedRequest)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// isLoopback reports whether host, with or without a port, is this machine.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// search returns the entries with q in subject, recipient or Message-ID, ignoring
// case. An empty q matches all.
func (b *Inbox) search(q string) []Entry {
	q = strings.ToLower(strings.TrimSpace(q))
	return b.store.find(func(e Entry) bool {
		return strings.Contains(strings.ToLower(e.Subject+"\n"+strings.Join(e.To, "\n")+"\n"+e.MessageID), q)
	})
}

// settleTimeout bounds how long a look-up waits for open transactions.
const settleTimeout = 3 * time.Second

// lookup answers how often a Message-ID was accepted, with the envelope from and to if they are
// given. settled is false if a transaction is still open that was open when the request arrived:
// it may be of that message.
func (b *Inbox) lookup(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), settleTimeout)
	defer cancel()
	settled := b.store.settle(ctx)
	id, from, to := strings.Trim(r.FormValue("message_id"), "<> "), r.FormValue("from"), r.FormValue("to")
	found := b.store.find(func(e Entry) bool {
		return e.MessageID == id && (from == "" || strings.EqualFold(e.From, from)) &&
			(to == "" || slices.ContainsFunc(e.To, func(address string) bool { return strings.EqualFold(address, to) }))
	})
	writeJSON(w, map[string]any{"copies": len(found), "settled": settled, "messages": found})
}

// withMessage passes the message that the request names to serve.
func (b *Inbox) withMessage(serve func(w http.ResponseWriter, e Entry, raw []byte)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		found := b.store.find(func(e Entry) bool { return e.ID == r.PathValue("id") })
		if len(found) == 0 {
			http.NotFound(w, r)
			return
		}
		raw, err := os.ReadFile(filepath.Join(b.store.dir, found[0].ID+suffix))
		if err != nil {
			http.Error(w, fmt.Sprintf("read message: %v", err), http.StatusInternalServerError)
			return
		}
		serve(w, found[0], raw)
	}
}

func (b *Inbox) show(w http.ResponseWriter, page string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := pages.ExecuteTemplate(w, page, data); err != nil {
		b.lg.Warn("inbox page could not be written", "page", page, "error", err)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // fails only if the client is gone
}

// contents are the first text part and the first HTML part of a message.
type contents struct{ Text, HTML string }

// openMessage returns as much of a message as can be read, and the reason in Text
// if that is not all.
func openMessage(raw []byte) contents {
	var c contents
	m, err := message.Read(bytes.NewReader(raw))
	if m != nil {
		err = m.Walk(func(_ []int, part *message.Entity, err error) error {
			if err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) {
				return err
			}
			into := map[string]*string{"text/plain": &c.Text, "text/html": &c.HTML}
			kind, _, _ := part.Header.ContentType()
			if into[kind] == nil || *into[kind] != "" {
				return nil
			}
			body, err := io.ReadAll(part.Body)
			*into[kind] = strings.ToValidUTF8(string(body), "\uFFFD")
			return err
		})
	}
	if err != nil {
		c.Text = strings.TrimSpace(c.Text + fmt.Sprintf("\n\n(the rest of the message cannot be read: %v)", err))
	}
	return c
}
