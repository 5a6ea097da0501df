// Command probe runs in a pod and does what a test requests over HTTP: resolve a name, fetch a URL, store a text on a volume.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

const kept = "/data/kept"

func main() {
	client := http.Client{Timeout: 5 * time.Second}
	http.HandleFunc("GET /name", func(w http.ResponseWriter, _ *http.Request) {
		name, err := os.Hostname()
		answer(w, name, err)
	})
	http.HandleFunc("GET /lookup", func(w http.ResponseWriter, r *http.Request) {
		addresses, err := net.DefaultResolver.LookupHost(r.Context(), r.URL.Query().Get("name"))
		answer(w, fmt.Sprint(addresses), err)
	})
	http.HandleFunc("GET /fetch", func(w http.ResponseWriter, r *http.Request) {
		response, err := client.Get(r.URL.Query().Get("url"))
		if err != nil {
			answer(w, "", err)
			return
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		answer(w, string(body), err)
	})
	http.HandleFunc("PUT /kept", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = os.WriteFile(kept, body, 0o600)
		}
		answer(w, "kept", err)
	})
	http.HandleFunc("GET /kept", func(w http.ResponseWriter, _ *http.Request) {
		body, err := os.ReadFile(kept)
		answer(w, string(body), err)
	})
	log.Fatal(http.ListenAndServe(":8080", nil))
}

func answer(w http.ResponseWriter, text string, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	fmt.Fprint(w, text)
}
