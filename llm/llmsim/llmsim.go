// Package llmsim simulates an OpenAI-compatible model endpoint. The simulator
// parses the change out of the prompt and reports what the fixed rules of
// rules.yaml find in the added lines: real defects, and the same ones for the
// same prompt. It also fails on demand in the ways real endpoints fail.
//
// It shares no code with the client under test: it parses the prompt and
// writes the wire formats by their documentation alone.
package llmsim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
)

// maxBodyBytes bounds a request.
const maxBodyBytes = 256 << 20

// listedModel is the model that the endpoint lists. It answers as the one it is asked for.
const listedModel = "llmsim-1"

// Config configures the endpoint while no fault is injected.
type Config struct {
	// APIKey, if set, is the only key that the endpoint accepts.
	APIKey secret.Value
	// ContextTokens is the longest accepted prompt, at four bytes a token.
	// Default 0, no limit.
	ContextTokens int
	// BatchPolls is the number of polls for which a batch stays in progress.
	// Default 0.
	BatchPolls int
	// Clock dates files and batches. Default time.Now.
	Clock func() time.Time
	// Record receives the body of every model call, followed by a newline.
	// Default nil: bodies are not recorded.
	Record io.Writer
}

// Stats counts model calls; those in batches are not included.
type Stats struct {
	Calls int
	// ByFault counts the injected faults that were applied.
	ByFault map[FaultKind]int
}

// A Server is the endpoint. It is an [http.Handler] that serves
//
//	POST /v1/chat/completions                    as OpenAI does, also as a stream
//	POST /v1/responses                           as OpenAI does, without streaming
//	POST /v1beta/models/NAME:generateContent     as Google does
//	     /v1/files, /v1/batches, GET /v1/models  as OpenAI does
type Server struct {
	cfg Config
	mux *http.ServeMux

	mu       sync.Mutex // guards the fields below, and writes to cfg.Record
	faults   []Fault
	stats    Stats
	rewrites map[string]int // number of rewrites by message
	files    map[string][]byte
	batches  []*batch // oldest first
	lastID   int      // of files and batches
}

// New returns an endpoint without faults.
func New(cfg Config) *Server {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	s := &Server{cfg: cfg, mux: http.NewServeMux(), rewrites: map[string]int{}, files: map[string][]byte{}}
	s.stats.ByFault = map[FaultKind]int{}
	s.mux.HandleFunc("POST /v1/chat/completions", s.model(chat))
	s.mux.HandleFunc("POST /v1/responses", s.model(responses))
	s.mux.HandleFunc("POST /v1beta/models/{call}", s.model(gemini))
	for pattern, op := range map[string]struct {
		name  Operation
		serve func(r *http.Request) reply // called with s.mu held
	}{
		"POST /v1/files":               {Upload, s.uploadFile},
		"GET /v1/files/{id}/content":   {Content, s.fileContent},
		"DELETE /v1/files/{id}":        {Delete, s.deleteFile},
		"POST /v1/batches":             {Create, s.createBatch},
		"GET /v1/batches":              {List, s.listBatches},
		"GET /v1/batches/{id}":         {Retrieve, s.retrieveBatch},
		"POST /v1/batches/{id}/cancel": {Cancel, s.cancelBatch},
		"GET /v1/models":               {Models, s.listModels},
	} {
		s.mux.HandleFunc(pattern, s.operation(op.name, op.serve))
	}
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Stats returns the counts so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Calls: s.stats.Calls, ByFault: maps.Clone(s.stats.ByFault)}
}

// Rewrites returns how often each message was rewritten. The key is the
// custom_id of a batch line or, for single calls, the fence around the message.
func (s *Server) Rewrites() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.rewrites)
}

// model serves model calls in one wire format.
func (s *Server) model(d dialect) http.HandlerFunc {
	return s.serve(func(w http.ResponseWriter, r *http.Request, body []byte) reply {
		s.stats.Calls++
		if s.cfg.Record != nil {
			_, _ = s.cfg.Record.Write(append(slices.Clip(body), '\n'))
		}
		sum := sha256.Sum256(body)
		id := fmt.Sprintf("%s%04d", hex.EncodeToString(sum[:6]), s.stats.Calls)
		w.Header().Set("X-Request-Id", "req_"+id)
		q, ok := d.read(body)
		if !ok {
			return refuse(BadRequest)
		}
		f := s.takeFault(Model, q)
		return s.respond(r, f, func() reply { return s.complete(d, id, q, f) })
	})
}

// operation serves an operation other than a model call.
func (s *Server) operation(op Operation, serve func(r *http.Request) reply) http.HandlerFunc {
	return s.serve(func(_ http.ResponseWriter, r *http.Request, body []byte) reply {
		r.Body = io.NopCloser(bytes.NewReader(body))
		return s.respond(r, s.takeFault(op, query{}), func() reply { return serve(r) })
	})
}

// serve reads the request, has answer answer it with s.mu held, and sends that.
func (s *Server) serve(answer func(http.ResponseWriter, *http.Request, []byte) reply) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
		if err != nil {
			return // the client disconnected, or the body is too long
		}
		s.mu.Lock()
		out := answer(w, r, body)
		s.mu.Unlock()
		send(w, r, out)
	}
}

func (s *Server) listModels(*http.Request) reply {
	return jsonReply(http.StatusOK, map[string]any{
		"object": "list",
		"data":   []any{map[string]any{"id": listedModel, "object": "model", "created": 0, "owned_by": "llmsim"}},
	})
}
