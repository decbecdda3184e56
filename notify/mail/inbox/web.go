package inbox

import (
	"embed"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

//go:embed web
var files embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{"ago": ago, "bytes": size}).ParseFS(files, "web/*.html"))

// pageSize is the number of messages on one page of the list.
const pageSize = 25

// What the pages may do: nothing but show themselves. A message's HTML gets
// less still, for a stranger wrote it: it is shown in a sandbox that runs,
// loads, sends and opens nothing.
const (
	pagePolicy    = "default-src 'none'; style-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	messagePolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)

func (b *Inbox) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", b.listPage)
	mux.HandleFunc("GET /messages/{id}", b.messagePage)
	mux.HandleFunc("GET /messages/{id}/html", b.messageHTML)
	mux.Handle("GET /web/style.css", http.FileServerFS(files))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /api/messages", b.apiList)
	mux.HandleFunc("GET /api/messages/{id}", b.apiMessage)
	mux.HandleFunc("GET /api/messages/{id}/raw", b.raw)
	mux.HandleFunc("GET /api/lookup", b.apiLookup)
	mux.HandleFunc("GET /inbox/fault", fromLoopback(b.apiFaults))
	mux.HandleFunc("POST /inbox/fault", fromLoopback(b.apiInject))
	mux.HandleFunc("DELETE /inbox/fault", fromLoopback(b.apiClearFaults))
	return http.NewCrossOriginProtection().Handler(b.guard(mux))
}

// guard sets what every answer has, and refuses names that are not this
// machine's when only this machine is served: a page elsewhere could otherwise
// read the mail through a name of its own that leads here.
func (b *Inbox) guard(next http.Handler) http.Handler {
	bound, _ := b.http.Addr().(*net.TCPAddr)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bound != nil && bound.IP.IsLoopback() && !isLoopback(r.Host) {
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

// fromLoopback refuses requests of other machines.
func fromLoopback(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.RemoteAddr) {
			http.Error(w, "only from this machine", http.StatusForbidden)
			return
		}
		next(w, r)
	}
}

// isLoopback reports whether host, with or without a port, is this machine.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (b *Inbox) listPage(w http.ResponseWriter, r *http.Request) {
	q := r.FormValue("q")
	p := newPage(b.search(q), number(r, "offset", 0), pageSize)
	b.show(w, "list.html", map[string]any{
		"Query": q, "Page": p, "First": min(p.Offset+1, p.Total), "Last": p.Offset + len(p.Messages), "SMTP": b.smtp.Addr().String(),
		"Newer": listURL(q, p.Offset-pageSize, p.Offset > 0), "Older": listURL(q, p.Offset+pageSize, p.Offset+len(p.Messages) < p.Total),
	})
}

// listURL leads to a page of the list, or nowhere if there is none.
func listURL(q string, offset int, exists bool) string {
	if !exists {
		return ""
	}
	return "/?" + url.Values{"q": {q}, "offset": {fmt.Sprint(max(0, offset))}}.Encode()
}

func (b *Inbox) messagePage(w http.ResponseWriter, r *http.Request) {
	e, raw, ok := b.fetch(w, r)
	if !ok {
		return
	}
	c := openMessage(raw)
	view := r.FormValue("view")
	if view != "text" && view != "source" {
		view = "html"
	}
	if view == "html" && c.HTML == "" {
		view = "text"
	}
	copies := b.store.find(func(o Entry) bool { return e.MessageID != "" && o.MessageID == e.MessageID })
	b.show(w, "message.html", map[string]any{
		"Entry": e, "Contents": c, "View": view, "Source": string(raw), "Copies": len(copies),
	})
}

func (b *Inbox) messageHTML(w http.ResponseWriter, r *http.Request) {
	if _, raw, ok := b.fetch(w, r); ok {
		w.Header().Set("Content-Security-Policy", messagePolicy)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(openMessage(raw).HTML))
	}
}

func (b *Inbox) raw(w http.ResponseWriter, r *http.Request) {
	if _, raw, ok := b.fetch(w, r); ok {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write(raw)
	}
}

// fetch reads the message the request names, or answers why not.
func (b *Inbox) fetch(w http.ResponseWriter, r *http.Request) (Entry, []byte, bool) {
	e, raw, ok, err := b.store.read(r.PathValue("id"))
	switch {
	case err != nil:
		b.lg.ErrorContext(r.Context(), "kept mail could not be read", "id", r.PathValue("id"), "error", err)
		http.Error(w, "the message cannot be read; the log says why", http.StatusInternalServerError)
	case !ok:
		http.Error(w, "no such message", http.StatusNotFound)
	default:
		return e, raw, true
	}
	return Entry{}, nil, false
}

func (b *Inbox) show(w http.ResponseWriter, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := pages.ExecuteTemplate(w, name, data); err != nil {
		b.lg.Warn("inbox page could not be written", "page", name, "error", err)
	}
}

// ago is how long t is past, in the largest unit that fits.
func ago(t time.Time) string {
	d := time.Since(t)
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return t.Format("2006-01-02")
}

// size is a number of bytes for people.
func size(n int64) string {
	if n < 10_000 {
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%d kB", n/1000)
}
