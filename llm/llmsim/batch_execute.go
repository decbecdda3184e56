package llmsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// A batchRequest is one line of an input file.
type batchRequest struct {
	CustomID string          `json:"custom_id"`
	Method   string          `json:"method"`
	URL      string          `json:"url"`
	Body     json.RawMessage `json:"body"`
}

// execute answers the lines of b and stores its files. The output has the
// reverse order of the input. The caller holds s.mu.
func (s *Server) execute(b *batch) {
	requests, problem := b.validate(s.files[b.input])
	if problem != nil {
		b.status, b.problem = "failed", problem
		return
	}
	b.status, b.total = "completed", len(requests)
	skipped := 0 // the first ones are not executed
	if status, ok := map[FaultKind]string{Expire: "expired", CancelHalfway: "cancelled"}[b.fate]; ok {
		b.status, skipped = status, (len(requests)+1)/2
	}
	var output, errors bytes.Buffer
	for i, r := range slices.Backward(requests) {
		if i < skipped {
			writeLine(&errors, r.CustomID, nil, map[string]any{"code": "batch_" + b.status, "message": "This request could not be executed."})
			b.failed++
			continue
		}
		s.executeLine(b, i, r, &output, &errors)
	}
	if b.fate != NoFiles {
		b.output, b.errors = s.storeLines(output), s.storeLines(errors)
	}
}

func (s *Server) storeLines(lines bytes.Buffer) *file {
	if lines.Len() == 0 {
		return nil
	}
	return s.storeFile(lines.Bytes())
}

// executeLine answers one line, changed as the fate of b says.
func (s *Server) executeLine(b *batch, i int, r batchRequest, output, errors *bytes.Buffer) {
	out := s.answerLine(b, i, r)
	to := output
	if out.status != http.StatusOK {
		to = errors
		b.failed++
	} else {
		b.done++
	}
	if b.fate == MissingLines && i%3 == 0 {
		return
	}
	response := map[string]any{"status_code": out.status, "request_id": "req_" + r.CustomID, "body": json.RawMessage(out.body)}
	if !json.Valid(out.body) {
		response["body"] = string(out.body)
	}
	writeLine(to, r.CustomID, response, nil)
	switch b.fate {
	case DoubledLines:
		writeLine(to, r.CustomID, response, nil)
	case BrokenLines:
		to.WriteString("{\"custom_id\":\"" + r.CustomID + "\n\n[]\n{\"response\":null}\n")
	}
}

func (s *Server) answerLine(b *batch, i int, r batchRequest) reply {
	d := batchEndpoints[b.endpoint]
	q, ok := d.read(r.Body)
	if !ok {
		return apiErrors[BadRequest].reply()
	}
	q.customID = r.CustomID
	f := s.takeFault(Model, q)
	if b.fate == NotCarriedOut {
		return reply{body: []byte("null")}
	}
	if out, failed := f.Kind.reply(); failed {
		return out
	}
	return s.complete(*d, fmt.Sprintf("%s_%d", b.id, i), q, f).damaged(f.Kind)
}

func writeLine(to *bytes.Buffer, customID string, response, err map[string]any) {
	to.WriteString(encoded(map[string]any{"id": "batch_req_" + customID, "custom_id": customID, "response": response, "error": err}) + "\n")
}

// validate parses the input file. As at OpenAI, this happens after the batch was
// created.
func (b *batch) validate(input *file) ([]batchRequest, *problem) {
	switch {
	case b.fate == OutOfRoom:
		return nil, &problem{code: "token_limit_exceeded"}
	case b.fate == BadFile:
		return nil, &problem{"invalid_json_line", 1}
	case input == nil || len(input.content) == 0:
		return nil, &problem{code: "empty_file"}
	}
	var requests []batchRequest
	var model string
	seen := map[string]bool{}
	for raw := range bytes.Lines(input.content) {
		n := len(requests) + 1
		var r batchRequest
		if json.Unmarshal(raw, &r) != nil {
			return nil, &problem{"invalid_json_line", n}
		}
		q, _ := batchEndpoints[b.endpoint].read(r.Body)
		if n == 1 {
			model = q.model
		}
		switch {
		case seen[r.CustomID]:
			return nil, &problem{"duplicate_custom_id", n}
		case r.URL != b.endpoint || r.Method != http.MethodPost:
			return nil, &problem{"url_mismatch", n}
		case q.model != model:
			return nil, &problem{"model_mismatch", n}
		}
		seen[r.CustomID] = true
		requests = append(requests, r)
	}
	return requests, nil
}
