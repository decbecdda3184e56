// Package llmsim is a stand-in for an OpenAI-compatible model endpoint. It
// reads the numbered change out of the prompt it is sent and reports what a
// fixed set of rules finds in the added lines: real defects, the same ones for
// the same prompt, without a model. It also fails in every way a real endpoint
// does, on demand.
//
// It shares no code with the client it stands in for: it reads the prompt and
// writes the wire format by their documentation alone.
package llmsim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
)

// maxBodyBytes bounds a request.
const maxBodyBytes = 32 << 20

// Config says how the endpoint behaves while no fault is injected.
type Config struct {
	// Model is the model it lists and answers as. Default "llmsim-1".
	Model string
	// APIKey, if set, is the only key it accepts.
	APIKey secret.Value
	// Latency is how long an answer takes. Default 0.
	Latency time.Duration
	// ContextTokens is the longest prompt it takes, at four bytes a token.
	// Default 0, no limit.
	ContextTokens int
	// BatchPolls is how often a batch that is asked for is not ready yet. Default 0.
	BatchPolls int
	// EnqueuedTokens is how many tokens the batches that are not ready may hold
	// together; one that is over fails. Default 0, no limit.
	EnqueuedTokens int
	// Clock is what files and batches are dated by. Default the real time.
	Clock func() time.Time
	// Record is sent the body of every chat request as it came, and a line end.
	// Default nil, nowhere.
	Record io.Writer
}

// Stats counts the calls of the model since the start, without those in batches.
type Stats struct {
	Calls int `json:"calls"`
	// ByStatus counts answers by HTTP status; "none" is for connections that
	// were dropped or left hanging.
	ByStatus map[string]int `json:"by_status"`
	// ByFault counts the faults that hit, by kind.
	ByFault map[FaultKind]int `json:"by_fault"`
	// MaxActive is the largest number of requests at a time.
	MaxActive int `json:"max_active"`
}

// A Server is the endpoint. It is an [http.Handler] that serves
//
//	POST   /v1/chat/completions   as OpenAI does, without streaming
//	POST   /v1/responses          as OpenAI does, without streaming
//	POST   /v1beta/models/NAME:generateContent   as Google does
//	       /v1/files, /v1/batches as OpenAI does
//	GET    /v1/models
//	GET    /llmsim/stats          a [Stats] as JSON
//	GET    /llmsim/rewrites       what [Server.Rewrites] returns
//	POST   /llmsim/fault          injects a [Fault], given as JSON
//	DELETE /llmsim/fault          clears all faults
//
// The /llmsim paths answer to this machine only.
type Server struct {
	cfg Config
	mux *http.ServeMux

	mu     sync.Mutex // guards what follows, and writes to cfg.Record
	faults []Fault
	stats  Stats
	active int
	// rewrites counts how often each message was rewritten.
	rewrites map[string]int
	depot    depot
}

// New returns an endpoint without faults.
func New(cfg Config) *Server {
	if cfg.Model == "" {
		cfg.Model = "llmsim-1"
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	s := &Server{cfg: cfg, mux: http.NewServeMux(), rewrites: map[string]int{}, depot: newDepot()}
	s.stats.ByStatus, s.stats.ByFault = map[string]int{}, map[FaultKind]int{}
	s.mux.HandleFunc("POST /v1/chat/completions", s.model(chat))
	s.mux.HandleFunc("POST /v1/responses", s.model(responses))
	s.mux.HandleFunc("POST /v1beta/models/{call}", s.model(gemini))
	s.handleBatches()
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.mux.HandleFunc("GET /llmsim/stats", local(s.getStats))
	s.mux.HandleFunc("GET /llmsim/rewrites", local(s.getRewrites))
	s.mux.HandleFunc("POST /llmsim/fault", local(s.postFault))
	s.mux.HandleFunc("DELETE /llmsim/fault", local(s.deleteFaults))
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Stats returns the counts so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stats
	out.ByStatus, out.ByFault = maps.Clone(s.stats.ByStatus), maps.Clone(s.stats.ByFault)
	return out
}

// model serves calls of the model in one wire format.
func (s *Server) model(d dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
		if err != nil {
			return // the client went away, or sends without end
		}
		call := s.begin(body)
		defer s.end()
		w.Header().Set("X-Request-Id", "req_"+call.id)
		if wait(r, s.cfg.Latency) != nil {
			return
		}
		out := s.answer(r, d, &call)
		s.count(out)
		send(w, r, out)
	}
}

// send sends a reply, or breaks the connection if it is none.
func send(w http.ResponseWriter, r *http.Request, reply reply) {
	if reply.hang {
		_ = wait(r, 24*time.Hour)
	}
	if reply.hang || reply.drop {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), reply.header)
	w.WriteHeader(reply.status)
	_, _ = w.Write(reply.body)
}

// wait pauses, or returns an error when the client gave up.
func wait(r *http.Request, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

// A call is one chat request.
type call struct {
	id   string // of the body, and the number of the call
	body []byte
}

func (s *Server) begin(body []byte) call {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Calls++
	s.active++
	s.stats.MaxActive = max(s.stats.MaxActive, s.active)
	if s.cfg.Record != nil {
		_, _ = s.cfg.Record.Write(append(slices.Clip(body), '\n'))
	}
	sum := sha256.Sum256(body)
	return call{id: fmt.Sprintf("%s%04d", hex.EncodeToString(sum[:6]), s.stats.Calls), body: body}
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
}

func (s *Server) count(out reply) {
	status := strconv.Itoa(out.status)
	if out.hang || out.drop {
		status = "none"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.ByStatus[status]++
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]any{
		"object": "list",
		"data":   []any{map[string]any{"id": s.cfg.Model, "object": "model", "created": 0, "owned_by": "llmsim"}},
	})
}

// Rewrites tells how often each message was rewritten: by the custom_id of its
// line in a batch, or, for single calls, by the fence around it.
func (s *Server) Rewrites() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.rewrites)
}

func (s *Server) countRewrite(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rewrites[key]++
}

func (s *Server) getRewrites(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Rewrites()) }

func (s *Server) getStats(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Stats()) }

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// local refuses requests from other machines.
func local(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			http.Error(w, "llmsim: only this machine may do that", http.StatusForbidden)
			return
		}
		next(w, r)
	}
}
