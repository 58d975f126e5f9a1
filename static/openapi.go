package static

import _ "embed" // for the directive below

// OpenAPI describes the HTTP interface in OpenAPI 3.1. It names its server as
// [OpenAPIServer], which stands for the public URL.
//
//go:embed openapi.yaml
var OpenAPI string

// OpenAPIServer is in [OpenAPI] once.
const OpenAPIServer = "http://localhost:8080"
