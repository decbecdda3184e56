package inbox

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxPage is the most entries one page of the JSON holds.
const maxPage = 500

// A page is a part of a list, newest first.
type page struct {
	Total    int     `json:"total"`
	Offset   int     `json:"offset"`
	Messages []Entry `json:"messages"`
}

// newPage cuts one page out of all.
func newPage(all []Entry, offset, limit int) page {
	offset = min(max(offset, 0), len(all))
	limit = min(max(limit, 1), maxPage)
	return page{len(all), offset, all[offset:min(offset+limit, len(all))]}
}

// search finds the entries with q in subject, recipient or Message-ID, letters
// of either case. An empty q finds all.
func (b *Inbox) search(q string) []Entry {
	q = strings.ToLower(strings.TrimSpace(q))
	return b.store.find(func(e Entry) bool {
		return strings.Contains(strings.ToLower(e.Subject+"\n"+strings.Join(e.To, "\n")+"\n"+e.MessageID), q)
	})
}

func (b *Inbox) apiList(w http.ResponseWriter, r *http.Request) {
	b.writeJSON(w, newPage(b.search(r.FormValue("q")), number(r, "offset", 0), number(r, "limit", 50)))
}

func (b *Inbox) apiMessage(w http.ResponseWriter, r *http.Request) {
	if e, raw, ok := b.fetch(w, r); ok {
		b.writeJSON(w, struct {
			Entry
			contents
		}{e, openMessage(raw)})
	}
}

// settlePatience bounds how long a look-up waits for open transactions.
const settlePatience = 3 * time.Second

// apiLookup says how often a Message-ID was accepted. Settled is false while a
// transaction that was open when the question came is still open, for it may be
// the one that is asked for.
func (b *Inbox) apiLookup(w http.ResponseWriter, r *http.Request) {
	id := strings.Trim(r.FormValue("message_id"), "<> ")
	if id == "" {
		http.Error(w, "message_id is missing", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), settlePatience)
	defer cancel()
	settled := b.store.settle(ctx)
	found := b.store.find(func(e Entry) bool { return e.MessageID == id })
	b.writeJSON(w, struct {
		Copies   int     `json:"copies"`
		Settled  bool    `json:"settled"`
		Messages []Entry `json:"messages"`
	}{len(found), settled, found})
}

func (b *Inbox) apiFaults(w http.ResponseWriter, _ *http.Request) { b.writeJSON(w, b.faults.list()) }

func (b *Inbox) apiInject(w http.ResponseWriter, r *http.Request) {
	var f Fault
	const maxFault = 4 << 10
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxFault))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		http.Error(w, "read fault: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := b.Inject(f); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.apiFaults(w, r)
}

func (b *Inbox) apiClearFaults(w http.ResponseWriter, r *http.Request) {
	b.ClearFaults()
	b.apiFaults(w, r)
}

func (b *Inbox) writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		b.lg.Warn("inbox answer could not be written", "error", err)
	}
}

// number is the form value name, or otherwise if it is not a number.
func number(r *http.Request, name string, otherwise int) int {
	n, err := strconv.Atoi(r.FormValue(name))
	if err != nil {
		return otherwise
	}
	return n
}
