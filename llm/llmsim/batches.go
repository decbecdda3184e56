package llmsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// maxBatchLines and maxBatchBytes are the API's limits of one input file.
const (
	maxBatchLines = 50_000
	maxBatchBytes = 200 << 20
)

// A batch is one batch at the endpoint. It is carried out when it is asked for
// after it was not ready for [Config].BatchPolls times.
type batch struct {
	id, status, endpoint, input string
	output, errors              *upload
	problems                    []map[string]any
	metadata                    map[string]any
	created                     int64
	polls                       int
	tokens                      int // of its input, while it is enqueued
	total, done, failed         int
	fate                        FaultKind
}

func (s *Server) handleBatches() {
	s.mux.HandleFunc("POST /v1/files", s.on(Upload, s.postFile))
	s.mux.HandleFunc("GET /v1/files/{id}/content", s.on(Content, s.content))
	s.mux.HandleFunc("DELETE /v1/files/{id}", s.on(Delete, s.deleteFile))
	s.mux.HandleFunc("POST /v1/batches", s.on(Create, s.createBatch))
	s.mux.HandleFunc("GET /v1/batches", s.on(List, s.listBatches))
	s.mux.HandleFunc("GET /v1/batches/{id}", s.on(Retrieve, s.retrieveBatch))
	s.mux.HandleFunc("POST /v1/batches/{id}/cancel", s.on(Cancel, s.cancelBatch))
}

func (s *Server) createBatch(r *http.Request) reply {
	var req struct {
		InputFileID      string         `json:"input_file_id"`
		Endpoint         string         `json:"endpoint"`
		CompletionWindow string         `json:"completion_window"`
		Metadata         map[string]any `json:"metadata"`
	}
	if json.NewDecoder(r.Body).Decode(&req) != nil || dialects[req.Endpoint] == nil || req.CompletionWindow != "24h" {
		return apiErrors[BadRequest].reply()
	}
	fate := s.nextFault(Batch, query{}).Kind
	s.depot.mu.Lock()
	defer s.depot.mu.Unlock()
	input := s.depot.files[req.InputFileID]
	if input == nil {
		return notFound()
	}
	s.depot.made++
	b := &batch{
		id: fmt.Sprintf("batch_%06d", s.depot.made), status: "validating", endpoint: req.Endpoint, input: input.id,
		metadata: req.Metadata, created: s.cfg.Clock().Unix(), tokens: len(input.content) / 4, fate: fate,
		total: bytes.Count(input.content, []byte("\n")),
	}
	if s.cfg.EnqueuedTokens > 0 && s.enqueued()+b.tokens > s.cfg.EnqueuedTokens {
		b.fate = OutOfRoom
	}
	s.depot.batches = append(s.depot.batches, b)
	return jsonReply(http.StatusOK, b.json())
}

// dialects are the endpoints that a batch may name.
var dialects = map[string]*dialect{"/v1/chat/completions": &chat, "/v1/responses": &responses}

// enqueued is the sum of tokens in batches that are not ready. The depot is
// locked.
func (s *Server) enqueued() (n int) {
	for _, b := range s.depot.batches {
		n += b.tokens
	}
	return n
}

// find returns a batch by its id. The depot is locked.
func (d *depot) find(id string) *batch {
	i := slices.IndexFunc(d.batches, func(b *batch) bool { return b.id == id })
	if i < 0 {
		return nil
	}
	return d.batches[i]
}

func (s *Server) retrieveBatch(r *http.Request) reply {
	s.depot.mu.Lock()
	defer s.depot.mu.Unlock()
	b := s.depot.find(r.PathValue("id"))
	if b == nil {
		return notFound()
	}
	s.advance(b)
	return jsonReply(http.StatusOK, b.json())
}

// advance moves b on by one step. The depot is locked.
func (s *Server) advance(b *batch) {
	b.polls++
	switch {
	case b.status != "validating" && b.status != "in_progress" && b.status != "cancelling":
	case b.status == "cancelling":
		b.fate = CancelHalfway
		s.carryOut(b)
	case b.polls <= s.cfg.BatchPolls:
		b.status = "in_progress"
	default:
		s.carryOut(b)
	}
}

func (s *Server) cancelBatch(r *http.Request) reply {
	s.depot.mu.Lock()
	defer s.depot.mu.Unlock()
	b := s.depot.find(r.PathValue("id"))
	switch {
	case b == nil:
		return notFound()
	case b.tokens == 0 && b.total > 0:
		return apiErrors[Conflict].reply()
	}
	b.status = "cancelling"
	return jsonReply(http.StatusOK, b.json())
}

// listBatches lists newest first.
func (s *Server) listBatches(r *http.Request) reply {
	s.depot.mu.Lock()
	defer s.depot.mu.Unlock()
	all := slices.Clone(s.depot.batches)
	slices.Reverse(all)
	if after := r.FormValue("after"); after != "" {
		i := slices.IndexFunc(all, func(b *batch) bool { return b.id == after })
		if i < 0 {
			return notFound()
		}
		all = all[i+1:]
	}
	limit, err := strconv.Atoi(r.FormValue("limit"))
	if err != nil {
		limit = 20
	}
	page := all[:min(len(all), limit)]
	data := []any{}
	for _, b := range page {
		data = append(data, b.json())
	}
	out := map[string]any{"object": "list", "data": data, "has_more": len(page) < len(all)}
	if len(page) > 0 {
		out["first_id"], out["last_id"] = page[0].id, page[len(page)-1].id
	}
	return jsonReply(http.StatusOK, out)
}

func (b *batch) json() map[string]any {
	var problems any
	if b.problems != nil {
		problems = map[string]any{"object": "list", "data": b.problems}
	}
	return map[string]any{
		"id": b.id, "object": "batch", "endpoint": b.endpoint, "errors": problems, "input_file_id": b.input,
		"completion_window": "24h", "status": b.status, "created_at": b.created, "metadata": b.metadata,
		"output_file_id": b.fileID(b.output), "error_file_id": b.fileID(b.errors),
		"request_counts":      map[string]any{"total": b.total, "completed": b.done, "failed": b.failed},
		"a_field_of_tomorrow": map[string]any{"unknown": true},
	}
}

func (b *batch) fileID(f *upload) any {
	switch {
	case f != nil:
		return f.id
	case b.fate == EmptyFileIDs:
		return ""
	}
	return nil
}
