package llmsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
)

type file struct {
	id      string
	content []byte
}

// A batch is executed by the first poll after [Config].BatchPolls polls.
type batch struct {
	id, status, endpoint, input string
	output, errors              *file
	problem                     *problem // why it failed
	metadata                    map[string]any
	created                     int64
	polls                       int
	total, done, failed         int
	fate                        FaultKind
}

// A problem is an error of a whole batch, at a line if line is not 0.
type problem struct {
	code string
	line int
}

// batchEndpoints are the paths that a batch may name.
var batchEndpoints = map[string]*dialect{"/v1/chat/completions": &chat, "/v1/responses": &responses}

func (s *Server) newID(format string) string {
	s.lastID++
	return fmt.Sprintf(format, s.lastID)
}

func (s *Server) storeFile(content []byte) *file {
	f := &file{s.newID("file-%06d"), content}
	s.files[f.id] = f
	return f
}

// uploadFile reads a multipart form with the fields purpose and file.
func (s *Server) uploadFile(r *http.Request) reply {
	part, header, err := r.FormFile("file")
	if err != nil || r.FormValue("purpose") != "batch" {
		return apiErrors[BadRequest].reply()
	}
	content, err := io.ReadAll(part)
	if err != nil {
		return apiErrors[BadRequest].reply()
	}
	f := s.storeFile(content)
	return jsonReply(http.StatusOK, map[string]any{
		"id": f.id, "object": "file", "bytes": len(content), "created_at": s.cfg.Clock().Unix(),
		"filename": header.Filename, "purpose": "batch", "status": "processed",
	})
}

func (s *Server) fileContent(r *http.Request) reply {
	f := s.files[r.PathValue("id")]
	if f == nil {
		return apiErrors[NotFound].reply()
	}
	return reply{status: http.StatusOK, header: http.Header{"Content-Type": {"application/octet-stream"}}, body: slices.Clone(f.content)}
}

func (s *Server) deleteFile(r *http.Request) reply {
	id := r.PathValue("id")
	if s.files[id] == nil {
		return apiErrors[NotFound].reply()
	}
	delete(s.files, id)
	return jsonReply(http.StatusOK, map[string]any{"id": id, "object": "file", "deleted": true})
}

func (s *Server) createBatch(r *http.Request) reply {
	var req struct {
		InputFileID      string         `json:"input_file_id"`
		Endpoint         string         `json:"endpoint"`
		CompletionWindow string         `json:"completion_window"`
		Metadata         map[string]any `json:"metadata"`
	}
	if json.NewDecoder(r.Body).Decode(&req) != nil || batchEndpoints[req.Endpoint] == nil || req.CompletionWindow != "24h" {
		return apiErrors[BadRequest].reply()
	}
	fate := s.takeFault(Batch, query{}).Kind
	input := s.files[req.InputFileID]
	if input == nil {
		return apiErrors[NotFound].reply()
	}
	b := &batch{
		id: s.newID("batch_%06d"), status: "validating", endpoint: req.Endpoint, input: input.id, metadata: req.Metadata,
		created: s.cfg.Clock().Unix(), fate: fate, total: bytes.Count(input.content, []byte("\n")),
	}
	s.batches = append(s.batches, b)
	return jsonReply(http.StatusOK, b.json())
}

func (s *Server) batch(id string) *batch {
	if i := slices.IndexFunc(s.batches, func(b *batch) bool { return b.id == id }); i >= 0 {
		return s.batches[i]
	}
	return nil
}

// retrieveBatch also moves the batch forward by one step.
func (s *Server) retrieveBatch(r *http.Request) reply {
	b := s.batch(r.PathValue("id"))
	if b == nil {
		return apiErrors[NotFound].reply()
	}
	b.polls++
	switch {
	case b.status == "cancelling":
		b.fate = CancelHalfway
		s.execute(b)
	case b.ended():
	case b.polls <= s.cfg.BatchPolls:
		b.status = "in_progress"
	default:
		s.execute(b)
	}
	return jsonReply(http.StatusOK, b.json())
}

func (b *batch) ended() bool {
	return !slices.Contains([]string{"validating", "in_progress", "cancelling"}, b.status)
}

func (s *Server) cancelBatch(r *http.Request) reply {
	b := s.batch(r.PathValue("id"))
	switch {
	case b == nil:
		return apiErrors[NotFound].reply()
	case b.ended():
		return apiErrors[Conflict].reply()
	}
	b.status = "cancelling"
	return jsonReply(http.StatusOK, b.json())
}

// listBatches lists newest first.
func (s *Server) listBatches(r *http.Request) reply {
	all := slices.Clone(s.batches)
	slices.Reverse(all)
	if after := r.FormValue("after"); after != "" {
		i := slices.IndexFunc(all, func(b *batch) bool { return b.id == after })
		if i < 0 {
			return apiErrors[NotFound].reply()
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
	var errors any
	if b.problem != nil {
		p := map[string]any{"code": b.problem.code, "message": "The batch was refused.", "param": nil, "line": nil}
		if b.problem.line > 0 {
			p["line"] = b.problem.line
		}
		errors = map[string]any{"object": "list", "data": []any{p}}
	}
	return map[string]any{
		"id": b.id, "object": "batch", "endpoint": b.endpoint, "errors": errors, "input_file_id": b.input,
		"completion_window": "24h", "status": b.status, "created_at": b.created, "metadata": b.metadata,
		"output_file_id": b.fileID(b.output), "error_file_id": b.fileID(b.errors),
		"request_counts": map[string]any{"total": b.total, "completed": b.done, "failed": b.failed},
		"future_field":   map[string]any{"unknown": true}, // clients have to ignore it
	}
}

func (b *batch) fileID(f *file) any {
	switch {
	case f != nil:
		return f.id
	case b.fate == EmptyFileIDs:
		return ""
	}
	return nil
}
