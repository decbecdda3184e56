package llm

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
)

// A tinyModel is a model of the llama architecture for tests of servers, as a GGUF file
// of about 100 KB: every byte is a token, and there are a few whole words.
//
// The layers of a chain have no effect (their weights are zero), so the next token
// depends on the last one only: each word leads to the next one, and any byte to the
// first word. The layers of a random model have random weights.
type tinyModel struct {
	chain []string // words of the answer; the last one leads to the end, or to itself
	loops bool
}

// The dimensions of a tinyModel.
const (
	ggufDim   = 64
	ggufHeads = 4
	ggufInner = 64
)

// GGUF value types.
const (
	ggufUint32 = 4
	ggufInt32  = 5
	ggufFloat  = 6
	ggufBool   = 7
	ggufString = 8
	ggufArray  = 9
)

// A ggufWriter writes the parts of a GGUF file (version 3, little endian).
type ggufWriter struct {
	bytes.Buffer
	fields, tensors int
	data            bytes.Buffer
	infos           bytes.Buffer
}

func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			put(b, uint64(len(s)))
			b.WriteString(s)
			continue
		}
		_ = binary.Write(b, binary.LittleEndian, v)
	}
}

func (w *ggufWriter) field(key string, kind uint32, value any) {
	put(&w.Buffer, key, kind, value)
	w.fields++
}

// list writes an array whose elements put writes.
func (w *ggufWriter) list(key string, kind uint32, elements []any) {
	put(&w.Buffer, key, uint32(ggufArray), kind, uint64(len(elements)))
	put(&w.Buffer, elements...)
	w.fields++
}

// tensor writes a tensor of 32-bit floats whose values at returns. The first dimension
// is the innermost one.
func (w *ggufWriter) tensor(name string, dims []int, at func(i int) float32) {
	put(&w.infos, name, uint32(len(dims)))
	size := 1
	for _, d := range dims {
		put(&w.infos, uint64(d))
		size *= d
	}
	for w.data.Len()%32 != 0 {
		w.data.WriteByte(0)
	}
	put(&w.infos, uint32(0), uint64(w.data.Len()))
	for i := range size {
		put(&w.data, at(i))
	}
	w.tensors++
}

func (w *ggufWriter) file() []byte {
	var out bytes.Buffer
	put(&out, [4]byte{'G', 'G', 'U', 'F'}, uint32(3), uint64(w.tensors), uint64(w.fields))
	out.Write(w.Bytes())
	out.Write(w.infos.Bytes())
	for out.Len()%32 != 0 {
		out.WriteByte(0)
	}
	out.Write(w.data.Bytes())
	return out.Bytes()
}

// byteTokens are the names that the GPT-2 vocabulary has for the 256 bytes.
func byteTokens() []any {
	out := make([]any, 256)
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae) {
			r, next = next, next+1
		}
		out[b] = string(r)
	}
	return out
}

// gguf returns the file of m.
func (m tinyModel) gguf() []byte {
	const userDefined, control, normal = int32(4), int32(3), int32(1)
	tokens := byteTokens()
	kinds := slices.Repeat([]any{normal}, len(tokens))
	first := len(tokens)
	for _, word := range m.chain {
		tokens, kinds = append(tokens, word), append(kinds, userDefined)
	}
	end := len(tokens)
	tokens, kinds = append(tokens, "<|end|>"), append(kinds, control)
	w := &ggufWriter{}
	w.field("general.architecture", ggufString, "llama")
	w.field("general.name", ggufString, "tiny")
	for key, n := range map[string]int{
		"context_length": 32_768, "embedding_length": ggufDim, "block_count": 1, "feed_forward_length": ggufInner, "vocab_size": len(tokens),
		"attention.head_count": ggufHeads, "attention.head_count_kv": ggufHeads, "rope.dimension_count": ggufDim / ggufHeads,
	} {
		w.field("llama."+key, ggufUint32, uint32(n))
	}
	w.field("llama.attention.layer_norm_rms_epsilon", ggufFloat, float32(1e-5))
	w.field("tokenizer.ggml.model", ggufString, "gpt2")
	w.field("tokenizer.ggml.pre", ggufString, "default")
	w.list("tokenizer.ggml.tokens", ggufString, tokens)
	w.list("tokenizer.ggml.token_type", ggufInt32, kinds)
	w.list("tokenizer.ggml.merges", ggufString, nil)
	w.field("tokenizer.ggml.bos_token_id", ggufUint32, uint32(end))
	w.field("tokenizer.ggml.eos_token_id", ggufUint32, uint32(end))
	w.field("tokenizer.ggml.add_bos_token", ggufBool, false)
	m.weights(w, first, end)
	return w.file()
}

// weights writes the tensors. In a chain, dimension k is set for the k-th word, and
// dimension 0 for any other token.
func (m tinyModel) weights(w *ggufWriter, first, end int) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(int) float32 { return float32(random.NormFloat64()) * 0.3 }
	layer, embedding, output := noise, noise, noise
	if len(m.chain) > 0 {
		layer = func(int) float32 { return 0 }
		state := func(token int) int {
			if token >= first && token < end {
				return token - first + 1
			}
			return 0
		}
		embedding = func(i int) float32 { return one(i%ggufDim == state(i/ggufDim)) }
		output = func(i int) float32 {
			from, token := i%ggufDim, i/ggufDim
			next := first + from
			if m.loops {
				next = min(next, end-1)
			}
			return 20 * one(from <= len(m.chain) && token == next)
		}
	}
	vocabulary := end + 1
	w.tensor("token_embd.weight", []int{ggufDim, vocabulary}, embedding)
	for name, dims := range map[string][]int{
		"attn_norm": {ggufDim}, "attn_q": {ggufDim, ggufDim}, "attn_k": {ggufDim, ggufDim}, "attn_v": {ggufDim, ggufDim}, "attn_output": {ggufDim, ggufDim},
		"ffn_norm": {ggufDim}, "ffn_gate": {ggufDim, ggufInner}, "ffn_up": {ggufDim, ggufInner}, "ffn_down": {ggufInner, ggufDim},
	} {
		at := layer
		if len(dims) == 1 {
			at = func(int) float32 { return 1 }
		}
		w.tensor("blk.0."+name+".weight", dims, at)
	}
	w.tensor("output_norm.weight", []int{ggufDim}, func(int) float32 { return float32(math.Sqrt2) })
	w.tensor("output.weight", []int{ggufDim, vocabulary}, output)
}

func one(is bool) float32 {
	if is {
		return 1
	}
	return 0
}
