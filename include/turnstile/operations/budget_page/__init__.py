"""The budget page: its views, their pictures, and what stands beside a week."""
