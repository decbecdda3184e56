package provider

import (
	"context"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// Models lists the models of a provider: a sign of life that costs nothing and
// takes the key that a rewrite takes. Of Google's own protocol the list is empty.
// Errors carry the class that a rewrite would have met.
func (r *Rewriter) Models(ctx context.Context, provider string) ([]string, error) {
	for _, kind := range []rewrite.AdapterKind{rewrite.OpenAIChat, rewrite.OpenAIResponses, rewrite.GeminiGenerate} {
		endpoint := r.endpoints[door{provider, kind}]
		if endpoint == nil {
			continue
		}
		call, cancel := endpoint.Bound(ctx)
		defer cancel()
		list, err := endpoint.OpenAI().ListModels(call)
		if err != nil {
			return nil, endpoint.Classify(ctx, err, list.Header())
		}
		var models []string
		for _, m := range list.Models {
			models = append(models, m.ID)
		}
		return models, nil
	}
	return nil, failure.Errorf(failure.ConfigInvalid, "provider %q is not configured", provider)
}
