// Command collector is the OpenTelemetry collector with what the tests need: it receives
// traces over OTLP and sends them on over OTLP. Run it with --config=FILE.
package main

import (
	"log"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func main() {
	settings := otelcol.CollectorSettings{Factories: factories}
	resolver := &settings.ConfigProviderSettings.ResolverSettings
	resolver.DefaultScheme, resolver.ProviderFactories = "file", []confmap.ProviderFactory{fileprovider.NewFactory()}
	if err := otelcol.NewCommand(settings).Execute(); err != nil {
		log.Fatal(err)
	}
}

func factories() (otelcol.Factories, error) {
	from, to := otlpreceiver.NewFactory(), otlphttpexporter.NewFactory()
	return otelcol.Factories{
		Receivers: map[component.Type]receiver.Factory{from.Type(): from},
		Exporters: map[component.Type]exporter.Factory{to.Type(): to},
		Telemetry: otelconftelemetry.NewFactory(),
	}, nil
}
