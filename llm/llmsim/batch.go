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

// A batch is executed by the first poll after [Config].BatchPolls polls.
type batch struct {
	id, status, endpoint, input string
	output, errors              string // IDs of files, "" for none
	problem                     string // the code of why it failed, at the line if that is not 0
	line                        int
	metadata                    map[string]any
	created                     int64
	polls, total, done, failed  int
	fate                        FaultKind
}

// batchEndpoints are the paths that a batch may name.
var batchEndpoints = map[string]dialect{"/v1/chat/completions": chat, "/v1/responses": responses}

// A batchRequest is one line of an input file.
type batchRequest struct {
	CustomID string          `json:"custom_id"`
	Method   string          `json:"method"`
	URL      string          `json:"url"`
	Body     json.RawMessage `json:"body"`
}

func (s *Server) newID(format string) string {
	s.lastID++
	return fmt.Sprintf(format, s.lastID)
}

// storeFile returns the ID of a file, "" for an empty one.
func (s *Server) storeFile(content []byte) string {
	if len(content) == 0 {
		return ""
	}
	id := s.newID("file-%06d")
	s.files[id] = content
	return id
}

// uploadFile reads a multipart form with the fields purpose and file.
func (s *Server) uploadFile(r *http.Request) reply {
	part, header, err := r.FormFile("file")
	if err != nil || r.FormValue("purpose") != "batch" {
		return refuse(BadRequest)
	}
	content, err := io.ReadAll(part)
	if err != nil || len(content) == 0 {
		return refuse(BadRequest)
	}
	return jsonReply(http.StatusOK, map[string]any{
		"id": s.storeFile(content), "object": "file", "bytes": len(content), "created_at": s.cfg.Clock().Unix(),
		"filename": header.Filename, "purpose": "batch", "status": "processed",
	})
}

func (s *Server) fileContent(r *http.Request) reply {
	content, ok := s.files[r.PathValue("id")]
	if !ok {
		return refuse(NotFound)
	}
	return reply{status: http.StatusOK, header: http.Header{"Content-Type": {"application/octet-stream"}}, body: slices.Clone(content)}
}

func (s *Server) deleteFile(r *http.Request) reply {
	id := r.PathValue("id")
	if s.files[id] == nil {
		return refuse(NotFound)
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
	err := json.NewDecoder(r.Body).Decode(&req)
	if _, known := batchEndpoints[req.Endpoint]; err != nil || !known || req.CompletionWindow != "24h" {
		return refuse(BadRequest)
	}
	fate := s.takeFault(Batch, query{}).Kind
	input := s.files[req.InputFileID]
	if input == nil {
		return refuse(NotFound)
	}
	b := &batch{
		id: s.newID("batch_%06d"), status: "validating", endpoint: req.Endpoint, input: req.InputFileID, metadata: req.Metadata,
		created: s.cfg.Clock().Unix(), fate: fate, total: bytes.Count(input, []byte("\n")),
	}
	s.batches = append(s.batches, b)
	return jsonReply(http.StatusOK, b.json())
}

// batch returns the batch that a path names, nil if there is none.
func (s *Server) batch(r *http.Request) *batch {
	if i := slices.IndexFunc(s.batches, func(b *batch) bool { return b.id == r.PathValue("id") }); i >= 0 {
		return s.batches[i]
	}
	return nil
}

// retrieveBatch also moves the batch forward by one step.
func (s *Server) retrieveBatch(r *http.Request) reply {
	b := s.batch(r)
	if b == nil {
		return refuse(NotFound)
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
	b := s.batch(r)
	switch {
	case b == nil:
		return refuse(NotFound)
	case b.ended():
		return refuse(Conflict)
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
			return refuse(NotFound)
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
	fileID := func(id string) any {
		if b.fate == EmptyFileIDs {
			return id
		}
		return orNull(id)
	}
	var errors any
	if b.problem != "" {
		p := map[string]any{"code": b.problem, "message": "The batch was refused.", "param": nil, "line": nil}
		if b.line > 0 {
			p["line"] = b.line
		}
		errors = map[string]any{"object": "list", "data": []any{p}}
	}
	return map[string]any{
		"id": b.id, "object": "batch", "endpoint": b.endpoint, "errors": errors, "input_file_id": b.input,
		"completion_window": "24h", "status": b.status, "created_at": b.created, "metadata": b.metadata,
		"output_file_id": fileID(b.output), "error_file_id": fileID(b.errors),
		"request_counts": map[string]any{"total": b.total, "completed": b.done, "failed": b.failed},
		"future_field":   map[string]any{"unknown": true}, // clients have to ignore it
	}
}

// execute answers the lines of b and stores its files. The output has the
// reverse order of the input. The caller holds s.mu.
func (s *Server) execute(b *batch) {
	var requests []batchRequest
	if requests, b.problem, b.line = b.validate(s.files[b.input]); b.problem != "" {
		b.status = "failed"
		return
	}
	b.status, b.total = "completed", len(requests)
	skipped := 0 // the first ones are not executed
	if status, ok := map[FaultKind]string{Expire: "expired", CancelHalfway: "cancelled"}[b.fate]; ok {
		b.status, skipped = status, (len(requests)+1)/2
	}
	var output, errors bytes.Buffer
	for i, r := range slices.Backward(requests) {
		write := func(to *bytes.Buffer, response, err any) {
			to.WriteString(encoded(map[string]any{"id": "batch_req_" + r.CustomID, "custom_id": r.CustomID, "response": response, "error": err}) + "\n")
		}
		if i < skipped {
			write(&errors, nil, map[string]any{"code": "batch_" + b.status, "message": "This request could not be executed."})
			b.failed++
			continue
		}
		out := s.answerLine(b, i, r)
		to := &output
		if b.done++; out.status != http.StatusOK {
			to, b.done, b.failed = &errors, b.done-1, b.failed+1
		}
		if b.fate == MissingLines && i%3 == 0 {
			continue
		}
		response := map[string]any{"status_code": out.status, "request_id": "req_" + r.CustomID, "body": json.RawMessage(out.body)}
		if !json.Valid(out.body) {
			response["body"] = string(out.body)
		}
		write(to, response, nil)
		switch b.fate {
		case DoubledLines:
			write(to, response, nil)
		case BrokenLines:
			to.WriteString("{\"custom_id\":\"" + r.CustomID + "\n\n[]\n{\"response\":null}\n")
		}
	}
	if b.fate != NoFiles {
		b.output, b.errors = s.storeFile(output.Bytes()), s.storeFile(errors.Bytes())
	}
}

// answerLine answers one line, changed as the fate of b says.
func (s *Server) answerLine(b *batch, i int, r batchRequest) reply {
	d := batchEndpoints[b.endpoint]
	q, ok := d.read(r.Body)
	if !ok {
		return refuse(BadRequest)
	}
	q.customID = r.CustomID
	f := s.takeFault(Model, q)
	if b.fate == NotCarriedOut {
		return reply{body: []byte("null")}
	}
	if out, failed := f.Kind.reply(); failed {
		return out
	}
	return s.complete(d, fmt.Sprintf("%s_%d", b.id, i), q, f).damaged(f.Kind)
}

// validate parses the input file; code is why the batch fails, "" if it does not. As at OpenAI,
// this happens after the batch was created.
func (b *batch) validate(input []byte) (requests []batchRequest, code string, line int) {
	switch {
	case b.fate == OutOfRoom:
		return nil, "token_limit_exceeded", 0
	case len(input) == 0: // deleted
		return nil, "empty_file", 0
	}
	models, seen := map[string]bool{}, map[string]bool{}
	for raw := range bytes.Lines(input) {
		n := len(requests) + 1
		var r batchRequest
		failed := json.Unmarshal(raw, &r)
		q, _ := batchEndpoints[b.endpoint].read(r.Body)
		models[q.model] = true
		switch {
		case failed != nil:
			return nil, "invalid_json_line", n
		case len(models) > 1:
			return nil, "model_mismatch", n
		case seen[r.CustomID]:
			return nil, "duplicate_custom_id", n
		case r.URL != b.endpoint || r.Method != http.MethodPost:
			return nil, "url_mismatch", n
		}
		seen[r.CustomID] = true
		requests = append(requests, r)
	}
	return requests, "", 0
}
