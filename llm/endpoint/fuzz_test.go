package endpoint

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

// FuzzAnswer reads any bytes as an answer: it ends, within its bound, and an error quotes nothing.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":-1}}`))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}}]}\n\ndata: [DONE]\n"))
	f.Add([]byte("event: error\ndata: " + leak + "\n\nerror: {}\n: c\n"))
	f.Add([]byte(`{"error":{"message":"x"}}`))
	f.Add([]byte(strings.Repeat(`{"choices":[`, 1000)))
	f.Fuzz(func(t *testing.T, body []byte) {
		var a Answer
		err := a.receive(bytes.NewReader(body), http.Header{}, 10)
		if err != nil && strings.Contains(err.Error(), leak) || a.Parts > 11 {
			t.Fatalf("%d parts, error %v", a.Parts, err)
		}
	})
}
